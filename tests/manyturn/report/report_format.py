"""The format of a report's document: every key is there, and nothing but what the page expects stands under it."""

import json

from manyturn.report.document import COLUMNS

TEXT, NUMBER, COUNT, FLAG = (str,), (int, float), (int,), (bool,)
CELLS = {"text": TEXT, "number": NUMBER, "percent": NUMBER, "seconds": NUMBER, "interval": (list,)}
OF_EPISODES = {
    **dict.fromkeys(("task", "split", "stage", "ending", "cause"), (TEXT, False)),
    **dict.fromkeys(("source", "member", "attempts", "turns", "inner_turns", "invalid"), (COUNT, False)),
    **dict.fromkeys(("return", "credit"), (NUMBER, True)),
    "seconds": (NUMBER, False),
    "difficulty": (TEXT, True),
    "success": (FLAG, True),
    "tags": ((list,), False),
}
OF_TURNS = {
    **dict.fromkeys(("observations", "replies", "reasoning", "actions", "anchors", "roles"), (TEXT, False)),
    **dict.fromkeys(("faults", "inner"), (TEXT, True)),
    **dict.fromkeys(("rewards", "to_go", "progress"), (NUMBER, True)),
    "versions": (COUNT, True),
    **dict.fromkeys(("format_valid", "understood"), (FLAG, False)),
    "parts": ((dict,), False),
    "seconds": ((list,), False),
    **dict.fromkeys(("tokens", "logprobs", "entropies"), ((list,), True)),
}


def fits(value, kinds, nullable=False):
    if value is None:
        return nullable
    return isinstance(value, kinds) and (isinstance(value, bool) is (kinds == FLAG)) and value == value


def all_fit(values, kinds, nullable=False):
    assert isinstance(values, list)
    assert all(fits(value, kinds, nullable) for value in values), (kinds, values)


def check_document(plain):
    """Every key is there, and nothing but what the page expects stands under it."""
    plain = json.loads(json.dumps(plain, allow_nan=False))
    assert plain.keys() == {
        *("format", "kind", "title", "facts", "warnings", "figures", "curves", "tables", "sources", "episodes"),
        *("chunk_size", "done"),
    }
    assert plain["format"] == 1 and plain["kind"] in ("run", "evaluation", "comparison")
    assert fits(plain["title"], TEXT) and fits(plain["done"], FLAG) and plain["chunk_size"] > 0
    all_fit(plain["warnings"] + plain["sources"], TEXT)
    assert len(set(plain["sources"])) == len(plain["sources"]) > 0
    for name, text in plain["facts"]:
        all_fit([name, text], TEXT)
    for figure in plain["figures"]:
        assert figure.keys() == {"name", "value", "low", "high", "n", "percent"} and fits(figure["percent"], FLAG)
        all_fit([figure[key] for key in ("value", "low", "high", "n")], NUMBER, nullable=True)
    for curve in plain["curves"]:
        assert curve.keys() == {"title", "x", "y", "percent", "series"}
        for series in curve["series"]:
            assert series.keys() == {"name", "points"}
            for x, *others in series["points"]:
                assert fits(x, NUMBER) and len(others) == 3
                all_fit(others, NUMBER, nullable=True)
    for table in plain["tables"]:
        assert table.keys() == {"title", "columns", "rows"}
        for row in table["rows"]:
            for cell, column in zip(row, table["columns"], strict=True):
                assert fits(cell, CELLS[column["kind"]], nullable=column["kind"] != "text")
                if column["kind"] == "interval":
                    assert len(cell) == 3
                    all_fit(cell, NUMBER, nullable=True)
    episodes = plain["episodes"]
    assert episodes.keys() == OF_EPISODES.keys() == set(COLUMNS)
    assert len({len(values) for values in episodes.values()}) == 1
    for name, (kinds, nullable) in OF_EPISODES.items():
        all_fit(episodes[name], kinds, nullable)
    assert all(source < len(plain["sources"]) for source in episodes["source"])


def check_trace(trace, turns):
    """A trace of so many turns has all columns, equally long."""
    trace = json.loads(json.dumps(trace, allow_nan=False))
    assert trace.keys() == {*OF_TURNS, "columns", "last"} and fits(trace["last"], TEXT)
    for values in (*(trace[name] for name in OF_TURNS), *trace["columns"].values()):
        assert len(values) == turns
    for name, (kinds, nullable) in OF_TURNS.items():
        all_fit(trace[name], kinds, nullable)
    for values in trace["columns"].values():
        all_fit(values, NUMBER, nullable=True)
    for turn, tokens in enumerate(trace["tokens"]):
        for name in ("logprobs", "entropies"):
            if trace[name][turn] is not None:
                assert len(trace[name][turn]) == len(tokens)
                all_fit(trace[name][turn], NUMBER, nullable=True)


def checked(document):
    """The traces of a document that fits the format."""
    check_document(document.plain)
    chunks = list(document.chunks())
    assert [len(chunk) for chunk in chunks[:-1]] == [document.plain["chunk_size"]] * (len(document) - 1)
    traces = [trace for chunk in chunks for trace in chunk]
    for trace, turns in zip(traces, document.plain["episodes"]["turns"], strict=True):
        check_trace(trace, turns)
    return traces


def names_of(document):
    episodes = document.plain["episodes"]
    return list(zip(*(episodes[key] for key in ("source", "stage", "task", "member")), strict=True))
