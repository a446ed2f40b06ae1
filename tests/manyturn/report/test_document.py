"""Documents that would show what was not played, hide what was, or break the page that reads them."""

import asyncio
import json
import math
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_format import checked, names_of

from manyturn.agents.evaluation.paired_comparison import CompareError
from manyturn.agents.records.episode_rows import (
    EPISODES,
    RecordsError,
    read_episodes,
    read_turns,
    turn_schema,
    write_table,
)
from manyturn.envs.contract.random_keys import generator
from manyturn.report import document as documents
from manyturn.report.document import document_of
from manyturn.report.page import static_page
from manyturn.report.report_file import write_report
from manyturn.report.report_head import ReportError, number
from manyturn.report.selection import quotas, spread_order, whole_groups
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"
HOSTILE = ("\x00\x1b[31m\u202e", "</script><script>alert(1)</script>", "\u2028\ud7ff\U0010ffff", "", "漢" * 20_000)
SHORT = {
    "env": {"id": MAZE},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
    "warmup": {
        "episodes": 8,
        "must_succeed": False,
        "batch": 4,
        "max_updates": 2,
        "check_every": 2,
        "check_episodes": 2,
    },
    "rollout": {"tasks": 2, "group": 2},
    "learner": {"minibatch": 4},
    "evaluation": {"limit": 4, "every": 2, "every_limit": 2},
    "steps": 3,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reported") / "run"
    asyncio.run(train(parse_config(SHORT), folder))
    return folder


@pytest.fixture
def copy(run, tmp_path):
    """A run that a test may damage."""
    return shutil.copytree(run, tmp_path / "run")


def rewrite(run, step, change):
    """Change the rows of a step: ``change(episodes, turns)``, in place."""
    name = f"step_{step:06d}.parquet"
    episodes, turns = read_episodes(run / "episodes" / name), read_turns(run / "turns" / name)
    change(episodes, turns)
    extra = [key for key in turns[0] if key not in turn_schema().names]
    write_table(run / "episodes" / name, episodes, EPISODES)
    write_table(run / "turns" / name, turns, turn_schema(extra))


@pytest.mark.deep
@pytest.mark.parametrize("live", [False, True])
def test_a_run_is_shown_as_it_was_played(run, live):
    document = document_of(run, live)
    traces = dict(zip(names_of(document), checked(document), strict=True))
    files = [*sorted((run / "turns").iterdir()), run / "evaluation" / "turns.parquet"]
    rows = [row for file in files for row in read_turns(file)]
    assert document.plain["kind"] == "run" and document.plain["done"] and not document.plain["warnings"]
    assert Counter((0, row["stage"], row["task"], row["member"]) for row in rows) == Counter(
        {name: len(trace["replies"]) for name, trace in traces.items()}
    )
    for row in rows:
        trace, turn = traces[0, row["stage"], row["task"], row["member"]], row["turn"]
        assert [trace[key][turn] for key in ("observations", "replies", "actions", "anchors", "tokens")] == [
            row[key] for key in ("observation", "reply", "action", "anchor", "tokens")
        ]
        for name, values in trace["columns"].items():
            assert values[turn] == pytest.approx(row[name], rel=1e-4)
        assert sum(trace["parts"][turn].values()) == pytest.approx(trace["rewards"][turn], rel=2e-5, abs=1e-9)
        if row["logprobs"] is not None:
            assert trace["logprobs"][turn] == pytest.approx(row["logprobs"], rel=1e-3)
    for trace, total in zip(traces.values(), document.plain["episodes"]["return"], strict=True):
        assert trace["to_go"][0] == pytest.approx(total, rel=1e-4)
    assert all(trace["columns"].keys() >= {"advantage"} for name, trace in traces.items() if name[1] != "evaluate")


def test_curves_and_figures_are_the_runs_own(run):
    plain = document_of(run).plain
    summary = json.loads((run / "summary.json").read_text())
    steps = [line for line in read_metrics(run) if line["phase"] == "train"]
    curves = {(c["title"], s["name"]): s["points"] for c in plain["curves"] for s in c["series"]}
    for title, name, key in (("Success", "training", "success"), ("Entropy", "entropy", "entropy")):
        found = [[x, y] for x, y, _, _ in curves[title, name]]
        assert found == [[line["step"], pytest.approx(line[key], rel=1e-4)] for line in steps]
    assert [point[0] for point in curves["Success", "validation"]] == [2]
    held = curves["Success", "held out"]
    assert [point[0] for point in held] == [0, 0, 3] and held[1][1:] == [None] * 3
    assert held[2][3] == pytest.approx(summary["after"]["ci_high"], rel=1e-4)
    figures = {figure["name"]: figure for figure in plain["figures"]}
    told = {"before": "success before", "after": "success after", "difference": "difference", "expert": "expert"}
    for key, name in told.items():
        assert figures[name]["value"] == number(summary[key]["success"]) and figures[name]["n"] == 4
    entries = dict(next(table for table in plain["tables"] if table["title"] == "Configuration")["rows"])
    assert entries["learner.minibatch"] == "4" and entries["credit.advantage.name"] == "gigpo"


def test_errors_and_hostile_text_reach_the_page_as_data(copy):
    def spoil(episodes, turns):
        failed, odd = episodes[0], episodes[1]
        failed.update({"success": None, "return": None, "ending": "env_error", "cause": HOSTILE[1], "turns": 0})
        failed["invalid_actions"] = 0
        turns[:] = [row for row in turns if (row["task"], row["member"]) != (failed["task"], failed["member"])]
        own = [row for row in turns if (row["task"], row["member"]) == (odd["task"], odd["member"])]
        rng = generator("tests", "credit")
        for row, text in zip(own, HOSTILE, strict=False):
            row.update({"observation": text, "reply": text, "action": text, "tokens": [text] * len(row["tokens"])})
            row["reward_parts"] = {"__proto__": math.nan, text: math.inf}
            row.update({"reward": -math.inf, "return_to_go": math.nan})
        for row in turns:
            row["advantage"] = float(rng.normal())
        turns[-1]["advantage"] = math.nan
        odd["last"], odd["tags"], odd["difficulty"] = HOSTILE[0], list(HOSTILE), None

    rewrite(copy, 2, spoil)
    document = document_of(copy)
    traces = dict(zip(names_of(document), checked(document), strict=True))
    episodes = document.plain["episodes"]
    [failed] = [i for i, ending in enumerate(episodes["ending"]) if ending == "env_error"]
    assert (
        episodes["turns"][failed] == 0
        and episodes["credit"][failed] is None
        and episodes["cause"][failed] == HOSTILE[1]
    )
    odd, _, last = [place for place, stage in enumerate(episodes["stage"]) if stage == "train/2"][1:]
    trace = traces[names_of(document)[odd]]
    assert trace["replies"][:5] == list(HOSTILE) and trace["last"] == HOSTILE[0]
    assert trace["rewards"][:5] == trace["to_go"][:5] == [None] * 5 and trace["parts"][0] == {
        "__proto__": None,
        HOSTILE[0]: None,
    }
    assert episodes["credit"][odd] == pytest.approx(
        sum(trace["columns"]["advantage"]) / episodes["turns"][odd], rel=1e-3
    )
    assert episodes["credit"][last] is None
    assert HOSTILE[1] not in static_page(document.plain, document.chunks())


# --- what a page carries


@given(st.integers(0, 300))
def test_spread_order_takes_each_once(count):
    assert sorted(spread_order(count)) == list(range(count))
    assert spread_order(count)[:3] == list(dict.fromkeys([0, count - 1, (count - 1) // 2]))[: min(3, count)]


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(1, 1_000))
def test_quotas_use_the_room_and_no_more(sizes, limit):
    given_ = quotas(sizes, limit)
    assert all(0 <= one <= size for one, size in zip(given_, sizes, strict=True))
    assert sum(given_) == min(limit, sum(sizes))
    assert all(one >= min(size, limit // 4) for one, size in zip(given_[:4], sizes, strict=False))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 60))
def test_groups_stay_whole(sizes, quota):
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    groups = [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]
    chosen = whole_groups(groups, quota)
    assert chosen == sorted(set(chosen)) and 0 < len(chosen) <= quota
    parts = [set(group) & set(chosen) for group in groups]
    assert (
        all(len(part) in (0, len(group)) for part, group in zip(parts, groups, strict=True))
        or chosen == groups[0][:quota]
    )
    if quota >= sum(sizes):
        assert len(chosen) == sum(sizes)


def test_a_page_shows_all_of_a_run_in_part_and_a_server_the_newest(run, monkeypatch):
    monkeypatch.setattr(documents, "ENCLOSED", 8)
    monkeypatch.setattr(documents, "SERVED", 10)
    few, newest = document_of(run), document_of(run, live=True)
    groups = Counter(name[:3] for name in names_of(few))
    assert {stage for _, stage, _ in groups} == {"train/1", "train/2", "train/3", "evaluate"}
    assert {n for (_, stage, _), n in groups.items() if stage != "evaluate"} == {2}
    assert few.plain["warnings"] == ["shows 8 of 16 episodes, in complete groups of steps 1 to 3 and of the evaluation"]
    assert len(checked(few)) == 8
    assert Counter(newest.plain["episodes"]["stage"]) == {"evaluate": 4, "train/3": 4, "train/2": 2}
    assert newest.plain["episodes"]["stage"] == sorted(
        newest.plain["episodes"]["stage"], key="train/2 train/3 evaluate".find
    )


def test_a_page_keeps_its_size_however_long_episodes_are(copy, monkeypatch):
    rng = generator("tests", "weight")

    def lengthen(episodes, turns):
        for row in turns:
            row["observation"] = rng.bytes(3_000).hex()

    for step in (1, 2, 3):
        rewrite(copy, step, lengthen)
    empty = len(static_page(document_of(copy).plain, []))
    whole = len(static_page(document_of(copy).plain, document_of(copy).chunks())) - empty
    monkeypatch.setattr(documents, "_ROOM", 200_000)
    document = document_of(copy)
    assert 0 < len(document.places) < 16 and "shows" in document.plain["warnings"][0]
    assert len(static_page(document.plain, document.chunks())) - empty < 1.5 * 200_000 < whole


# --- files that are damaged, missing or not there yet


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGE = {
    "half a file": (lambda run: cut(run / "turns" / "step_000002.parquet"), "not an intact Parquet file"),
    "no turns": (lambda run: (run / "turns" / "step_000002.parquet").unlink(), "restore it"),
    "another step's turns": (
        lambda run: shutil.copy(run / "turns" / "step_000001.parquet", run / "turns" / "step_000002.parquet"),
        "does not hold the turns",
    ),
    "the other table": (
        lambda run: shutil.copy(run / "turns" / "step_000001.parquet", run / "episodes" / "step_000001.parquet"),
        "holds turns of schema version",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_step_is_an_error_and_while_somebody_writes_a_warning(copy, name):
    damage, told = DAMAGE[name]
    damage(copy)
    with pytest.raises((RecordsError, ReportError), match=told):
        list(document_of(copy).chunks())
    document = document_of(copy, live=True)
    assert sum(told in text for text in document.plain["warnings"]) == 1 and len(checked(document)) == 12


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("metrics.jsonl", '{"step": 1}\n', "metrics.jsonl is damaged"),
        ("summary.json", "{", "summary.json cannot be read"),
        ("summary.json", "{}", "lacks something"),
        ("config.toml", "steps = ", "is not TOML"),
        ("config.toml", "steps = 3", "lacks something"),
        ("evaluation/summary.json", "[]", "no JSON object"),
    ],
)
def test_a_damaged_text_file_is_named(copy, file, text, told):
    (copy / file).write_text(text)
    with pytest.raises(ValueError, match=told) as found:
        document_of(copy)
    assert str(copy) in str(found.value) and "\n" not in str(found.value)


def test_a_folder_without_anything_is_told_apart(copy, tmp_path, monkeypatch):
    with pytest.raises(ReportError, match="there is no folder"):
        document_of(tmp_path / "nowhere")
    (tmp_path / "runs" / "garden-1").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReportError, match="no folder garden-1: did you mean runs/garden-1"):
        document_of(Path("garden-1"))
    with pytest.raises(CompareError, match="holds no evaluation"):
        document_of(copy / "checkpoints")
    (copy / "evaluation" / "summary.json").unlink()
    with pytest.raises(CompareError, match="not finished"):
        document_of(copy / "evaluation")


def test_a_run_that_goes_on_is_shown_as_far_as_it_is(copy):
    shutil.rmtree(copy / "evaluation")
    for file in ("summary.json", "episodes/step_000003.parquet"):
        (copy / file).unlink()
    with (copy / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "phase": "tr')
    document = document_of(copy)
    assert not document.plain["done"] and document.plain["warnings"] == ["the run is not over: 3 of 3 steps"]
    assert {stage for _, stage, _, _ in names_of(document)} == {"train/1", "train/2"}
    for file in ("metrics.jsonl", "episodes/step_000001.parquet", "episodes/step_000002.parquet"):
        (copy / file).unlink()
    assert checked(document_of(copy)) == []


# --- the file


def test_a_report_is_one_file_beside_what_it_shows(copy, evaluations, tmp_path, monkeypatch):
    assert write_report(copy) == copy / "report.html"
    once = (copy / "report.html").read_bytes()
    assert write_report(copy).read_bytes() == once, "one folder gives one file"
    monkeypatch.chdir(tmp_path)
    assert write_report(evaluations).resolve() == tmp_path / "report.html"
    assert not list(tmp_path.rglob("*.writing"))
    with pytest.raises(ReportError, match="make it"):
        write_report(copy, tmp_path / "nowhere" / "report.html")
