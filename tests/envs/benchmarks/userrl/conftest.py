"""An endpoint on loopback that fills forms, and a small checkout in UserRL's layout."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from manyturn.envs.contract.stable_random import Draws

_GYMS = "gyms/{0}Gym/{1}gym/data/{2}.json"


def filled(form: Mapping[str, Any], draws: Draws, schema: Mapping[str, Any]) -> Any:
    """A value that fits a JSON schema."""
    if "$ref" in form:
        form = schema["$defs"][form["$ref"].rpartition("/")[2]]
    if "enum" in form:
        return draws.pick(form["enum"])
    match form["type"]:
        case "object":
            return {name: filled(one, draws, schema) for name, one in form["properties"].items()}
        case "array":
            length = draws.between(form.get("minItems", 0), form.get("maxItems", 2))
            return [filled(form["items"], draws, schema) for _ in range(length)]
        case "integer":
            return draws.between(form["minimum"], form.get("maximum", form.get("exclusiveMaximum", 1) - 1))
        case "boolean":
            return bool(draws.below(2))
    return "Well."


class Endpoint:
    """A model behind an OpenAI-compatible endpoint.

    ``answer`` makes its replies: values become JSON, texts stay as they are, bytes are sent as the whole answer.
    ``requests`` has all that came.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Any] = self.any_answer
        self.url = ""

    @staticmethod
    def any_answer(request: dict[str, Any]) -> Any:
        """An answer that fits the form that is asked for, always the same to the same."""
        schema = json.loads(request["messages"][0]["content"].partition("schema:\n")[2])
        return filled(schema, Draws("form", request["messages"]), schema)

    def reply(self, request: dict[str, Any]) -> bytes:
        self.requests.append(request)
        content = self.answer(request)
        if isinstance(content, bytes):
            return content
        text = content if isinstance(content, str) else json.dumps(content)
        return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()

    def says(self, *answers: Any) -> None:
        """Answer so, one after the other."""
        left = iter(answers)
        self.answer = lambda request: next(left)

    def user(self, **options: Any) -> dict[str, Any]:
        return {"kind": "model", "model": "m", "base_url": self.url, "wait": 0, **options}


@pytest.fixture
def endpoint(serve: Callable[[Callable[[dict[str, Any]], bytes]], str]) -> Endpoint:
    made = Endpoint()
    made.url = serve(made.reply)
    return made


def _records() -> dict[str, Any]:
    """Made problems of each gym, 40 of each."""
    numbers = range(40)
    return {
        _GYMS.format("Function", "function", "functions"): [
            {"id": f"f{n}", "rule": f"a * b - d ** 2 + c * {n}", "test_case": [1, 2, 1, 3], "expected_result": n - 7.0}
            for n in numbers
        ],
        _GYMS.format("Telepathy", "telepathy", "all_entities_refined"): [
            {"id": f"e{n}", "title": f"Tool {n}", "description": "I think of a tool.", "goal": "Guess it.",
             "target_entity": f"Tool {n} - it has {n} teeth", "category": "tool"}
            for n in numbers
        ],
        _GYMS.format("Turtle", "turtle", "all_stories_refined"): {
            str(n): {"new_title": f"Tale {n}", "new_surface": f"He ate {n} eggs and wept.", "judgment": "Yes",
                     "new_bottom": f"The {n} eggs were of chocolate.",
                     "evaluation": [{"statement": "Chocolate.", "score": 0.7}, {"statement": "No hen.", "score": 0.3}]}
            for n in numbers
        },
        _GYMS.format("Intention", "intention", "all_intentions_train"): [
            {"id": f"i{n}", "category": "Food", "task": f"Find me meal {n}.", "missing_details": [
                {"description": "Taste", "importance": "2", "inquiry": "Sweet?", "options": ["Yes"]},
                {"description": "Price", "importance": "3", "inquiry": "How dear?", "options": ["Cheap"]},
                {"description": "Size", "importance": "1", "inquiry": "How big?", "options": ["Big"]},
            ]}
            for n in numbers
        ],
        _GYMS.format("Intention", "intention", "all_intentions_test"): [],
    }  # fmt: skip


_ROWS: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "function": lambda n: {"id": f"f{n}"},
    "telepathy": lambda n: {"title": f"Tool {n}"},
    "turtle": lambda n: {"title": f"Tale {n}"},
    "intention": lambda n: {"id": f"i{n}"},
    "persuasion": lambda n: {"id": f"p{n}", "claim": f"Lane {n} needs a lamp", "argument": "It is dark there."},
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Of 40 problems the first 36 are the official train split."""
    import pyarrow as pa

    pq = pytest.importorskip("pyarrow.parquet")
    root = tmp_path / "UserRL"
    for name, records in _records().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(json.dumps(records))
    for gym, row in _ROWS.items():
        folder = root / "data" / f"{gym}_multiturn"
        folder.mkdir(parents=True)
        for split, numbers in (("train", range(36)), ("test", range(36, 40))):
            rows = [{"data_source": "made", "reward_model": row(number)} for number in numbers]
            pq.write_table(pa.Table.from_pylist(rows), folder / f"{split}.parquet")
    return root
