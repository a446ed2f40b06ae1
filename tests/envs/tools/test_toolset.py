"""A tool call is hostile text: it is run exactly when it fits, and answered with text whatever it is."""

import json
import time
from datetime import date
from typing import Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyturn.envs.tools.calls import BadCall, call_text, calls_text, is_call, read_calls
from manyturn.envs.tools.tool import BadArguments, Tool, ToolError
from manyturn.envs.tools.toolset import ToolFault, Toolset

pytestmark = pytest.mark.versions


class Shelf:
    """Books by number, as tools."""

    def __init__(self) -> None:
        self.books: dict[int, str] = {}
        self.toolset = Toolset([self.put, self.look, self.drop, self.borrow])

    def put(self, number: int, title: str) -> dict[str, Any]:
        """Put a book on the shelf.

        Args:
            number: where.
            title: of the book.
        """
        self.books[number] = title
        return {"number": number, "title": title}

    def look(self) -> dict[int, str]:
        """Look at the shelf."""
        return self.books

    def drop(self, number: int, why: Literal["old", "torn"] = "old", note: str | None = None) -> str:
        """Throw a book away.

        Args:
            number: where.
            why: the reason.
            note: what else there is to say.
        """
        if number not in self.books:
            raise ToolError(f"no book {number}")
        return f"dropped {self.books.pop(number)}: {why}"

    def borrow(self, until: date, weeks: float, tags: list[str]) -> Any:
        """Borrow books.

        Args:
            until: the last day.
            weeks: how long.
            tags: any.
        """
        return [until, weeks, tags]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["put", "look", "drop", "borrow", "pu", "", "__init__", "toolset"]) | st.text(max_size=8)
KEYS = st.sampled_from(["number", "title", "why", "note", "until", "weeks", "tags", "self"]) | st.text(max_size=4)
CALL = st.fixed_dictionaries({"name": NAMES | JSON, "arguments": st.dictionaries(KEYS, JSON, max_size=4) | JSON})


@settings(deadline=None)
@given(st.text() | st.builds(lambda call: json.dumps(call), JSON | CALL | st.lists(CALL, max_size=20)))
@example("[" * 100_000)
@example('{"name": "look", "arguments": ' + '{"a":' * 40 + "1" + "}" * 41)
@example('{"name": "put", "arguments": {"number": ' + "9" * 5000 + ', "title": "x"}}')
@example('{"name": "put", "arguments": {"number": 1, "title": "' + "x" * 1_000_000 + '"}}')
@example('{"name": "put", "arguments": {"number": 1, "title": "\\ud83d"}}')
@example('{"name": "put", "arguments": {"number": 1, "title": "\ud83d"}}')
@example('{"name": "' + '\\"' * 49_000)
@example("{" + ",".join(f'"{n}":1' for n in range(9_000)) + ',"1":2}')
def test_whatever_is_written_is_answered_with_text_and_soon(action: str) -> None:
    shelf = Shelf()
    start = time.process_time()
    answered = shelf.toolset.answer(action)
    assert time.process_time() - start < 1.0
    assert isinstance(answered.text, str)
    assert answered.valid == (bool(answered.calls) and all(call.valid for call in answered.calls))
    if not answered.valid:
        assert "Error: " in answered.text and len(answered.text) < 20_000
    assert all(type(number) is int and isinstance(title, str) for number, title in shelf.books.items())


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ('{"name": "putt", "arguments": {}}', "no tool 'putt'; did you mean put?"),
        ('{"name": "put", "arguments": {"number": 1}}', "put: 'title' is missing"),
        ('{"name": "put", "arguments": {"number": 1, "title": "a", "x": 1}}', "no argument 'x', only number, title"),
        ('{"name": "put", "arguments": {"number": "1", "title": "a"}}', "'number': Input should be a valid integer"),
        ('{"name": "put", "arguments": {"number": true, "title": "a"}}', "'number': Input should be a valid integer"),
        ('{"name": "drop", "arguments": {"number": 1, "why": "ugly"}}', "'why': Input should be 'old' or 'torn'"),
        ('{"name": "put", "arguments": {"number": 1, "title": "a"}', "not valid JSON (Expecting ',' delimiter"),
        ('{"name": "put", "arguments": {"number": 1, "number": 2, "title": "a"}}', "'number' appears twice"),
        (
            '{"name": "borrow", "arguments": {"until": "2024-02-30", "weeks": 1, "tags": []}}',
            "'until': Input should be",
        ),
        (
            '{"name": "borrow", "arguments": {"until": "2024-02-03", "weeks": NaN, "tags": []}}',
            "NaN is not a JSON number",
        ),
        ('{"name": "borrow", "arguments": {"until": "2024-02-03", "weeks": 1e999, "tags": []}}', "too large"),
        ('{"name": "put", "arguments": {"number": 9223372036854775808, "title": "a"}}', "at most 64 bits"),
        ('{"name": "look", "parameters": {}}', "leave out 'parameters', add 'arguments'"),
        ('{"name": "look", "arguments": []}', "the arguments are an object"),
        (calls_text([("look", {})] * 17), "17 calls in one turn: write 1 to 16"),
        ("[]", "0 calls in one turn"),
        ("Let me look.", 'this is not a tool call: write {"name": TOOL, "arguments": {...}}'),
        ('He said {"name": "look", "arguments": {}}', "not a tool call"),
        (json.dumps(call_text("look")), "not a tool call"),
    ],
)
def test_an_error_names_the_mend_and_runs_nothing(action: str, told: str) -> None:
    shelf = Shelf()
    answered = shelf.toolset.answer(action)
    assert not answered.valid
    assert answered.text.startswith("Error: ") and told in answered.text
    assert not shelf.books


def test_results_are_json_and_text_passes_as_it_is() -> None:
    shelf = Shelf()
    assert shelf.toolset.answer(call_text("put", number=1, title="Emma")).text == '{"number":1,"title":"Emma"}'
    assert shelf.toolset.answer(call_text("look")).text == '{"1":"Emma"}'
    assert shelf.toolset.answer(call_text("drop", number=1)).text == "dropped Emma: old"
    borrowed = shelf.toolset.answer(call_text("borrow", until="2024-02-03", weeks=2, tags=["a"]))
    assert borrowed.text == '["2024-02-03",2.0,["a"]]'


def test_several_calls_run_in_order_and_a_bad_one_does_not_stop_the_others() -> None:
    shelf = Shelf()
    action = calls_text([("put", {"number": 1, "title": "a"}), ("put", {"number": "x"}), ("drop", {"number": 1})])
    answered = shelf.toolset.answer(action)
    assert [call.done for call in answered.calls] == [True, False, True]
    assert answered.text.splitlines()[2] == "dropped a: old" and not answered.valid


def test_a_tool_that_declines_was_understood() -> None:
    answered = Shelf().toolset.answer(call_text("drop", number=3))
    assert answered.text == "Error: no book 3"
    assert answered.valid and answered.calls[0].refused and not answered.calls[0].done


def test_a_tool_that_breaks_is_a_fault_of_the_environment() -> None:
    def broken() -> None:
        """Break."""
        raise KeyError("x")

    def unwritable() -> object:
        """Return what JSON cannot say."""
        return object()

    for function in (broken, unwritable):
        with pytest.raises(ToolFault, match=f"tool {function.__name__} raised") as caught:
            Toolset([function]).answer(call_text(function.__name__))
        assert caught.value.__cause__ is not None


def test_schemas_are_those_of_openai() -> None:
    put, look, drop, borrow = Shelf().toolset.schemas
    assert put == {
        "type": "function",
        "function": {
            "name": "put",
            "description": "Put a book on the shelf.",
            "parameters": {
                "type": "object",
                "properties": {
                    "number": {"description": "where.", "type": "integer"},
                    "title": {"description": "of the book.", "type": "string"},
                },
                "required": ["number", "title"],
                "additionalProperties": False,
            },
        },
    }
    assert look["function"]["parameters"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert drop["function"]["parameters"]["required"] == ["number"]
    assert drop["function"]["parameters"]["properties"]["why"] == {
        "default": "old",
        "description": "the reason.",
        "enum": ["old", "torn"],
        "type": "string",
    }
    assert drop["function"]["parameters"]["properties"]["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    kinds = borrow["function"]["parameters"]["properties"]
    assert kinds["until"] == {"description": "the last day.", "format": "date", "type": "string"}
    assert kinds["tags"] == {"description": "any.", "items": {"type": "string"}, "type": "array"}


def test_a_function_that_no_model_could_call_is_refused_with_the_mend() -> None:
    def silent(x: int) -> int: ...

    def untyped(x):
        """Count.

        Args:
            x: a number.
        """

    def untold(x: int) -> None:
        """Count."""

    def many(*x: int) -> None:
        """Count.

        Args:
            x: numbers.
        """

    def odd(x: Shelf) -> None:
        """Count.

        Args:
            x: a shelf.
        """

    mends = {silent: "docstring", untyped: "'x' a type", untold: "describe 'x'", many: "names", odd: "JSON can express"}
    for function, mend in mends.items():
        with pytest.raises(ValueError, match=mend):
            Toolset([function])
    with pytest.raises(ValueError, match="two tools are called 'put'"):
        Toolset([Shelf().put, Shelf().put])


def test_a_tool_may_bring_its_own_schema() -> None:
    def run(arguments: dict[str, Any]) -> Any:
        if "x" not in arguments:
            raise BadArguments("double: 'x' is missing")
        return 2 * arguments["x"]

    function = {"name": "double", "description": "Double.", "parameters": {"type": "object"}}
    toolset = Toolset([Tool({"type": "function", "function": function}, run)])
    assert toolset.answer(call_text("double", x=4)).text == "8"
    assert not toolset.answer(call_text("double")).valid


@given(st.lists(st.tuples(st.text(max_size=5), st.dictionaries(st.text(max_size=5), st.text() | st.booleans()))))
def test_canonical_text_is_read_back(calls: list[tuple[str, dict[str, Any]]]) -> None:
    if not 1 <= len(calls) <= 16:
        with pytest.raises(BadCall):
            read_calls(calls_text(calls))
        return
    assert is_call(calls_text(calls))
    assert [tuple(call) for call in read_calls(calls_text(calls))] == calls


@pytest.mark.parametrize("speech", ["Hello!", "[sighs] Sorry.", '"{}"', "12", "", "I call {look}."])
def test_speech_is_no_call(speech: str) -> None:
    assert not is_call(speech)
