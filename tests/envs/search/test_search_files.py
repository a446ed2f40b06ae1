"""A corpus of one's own must be played like the made one, and a fault of its files be told with its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.search.env import Search
from manyturn.envs.tools.calls import call_text

CORPUS = [{"id": f"d{n}", "text": f"Lamp {n} was made by Smith {n * 7} in {1800 + n}."} for n in range(40)]
QUESTIONS = [
    {"id": f"q{n}", "question": f"Who made lamp {n}?", "answers": [f"Smith {n * 7}", f"smith no {n * 7}"]}
    | {"supports": [f"d{n}"], "split": ("train", "validation", "test")[n % 3]}
    for n in range(30)
]


def write(path: Path, rows: list[Any]) -> str:
    path.write_text("".join(f"{json.dumps(row) if not isinstance(row, str) else row}\n" for row in rows))
    return str(path)


@pytest.fixture
def files(tmp_path: Path):
    def made(corpus: list[Any] = CORPUS, questions: list[Any] = QUESTIONS) -> dict[str, str]:
        return {
            "corpus": write(tmp_path / "corpus.jsonl", corpus),
            "questions": write(tmp_path / "questions.jsonl", questions),
        }

    return made


def test_the_conformance_check_passes(files) -> None:
    report = check("manyturn/Search-v0", files(), samples=2)
    assert report.passed, str(report)


def test_an_answer_that_names_no_supports_needs_no_sources(files) -> None:
    env = Search(**files(questions=[{"id": "q", "question": "Who made lamp 3?", "answers": ["Smith 21"]}]))
    assert len(env.splits) == 1 and env.split == env.splits[0]
    env.reset()
    assert "Smith 21" in env.step(env.expert())[0]
    assert env.step(call_text("answer", text="smith 21", sources=[]))[-1]["success"]


def test_a_file_that_has_changed_is_read_again(files) -> None:
    first = Search(**files())
    second = Search(**files(corpus=[{"id": row["id"], "text": row["text"] + " Again."} for row in CORPUS]))
    assert first._corpus.passages["d1"] + " Again." == second._corpus.passages["d1"]
    assert Search(**files())._corpus is not second._corpus


@pytest.mark.parametrize(
    ("corpus", "questions", "told"),
    [
        ([], QUESTIONS, "the corpus is empty"),
        (CORPUS, [], "there are no questions"),
        ([*CORPUS, CORPUS[0]], QUESTIONS, r"line 41: the id 'd0' occurs twice"),
        (["{"], QUESTIONS, "line 1: this is no JSON"),
        (["[1]"], QUESTIONS, "line 1: write one JSON object"),
        ([{"id": "d0"}], QUESTIONS, "line 1: 'text' must be a text"),
        ([{"id": 3, "text": "x"}], QUESTIONS, "line 1: 'id' must be a text"),
        (CORPUS, [{**QUESTIONS[0], "answers": []}], "at least one"),
        (CORPUS, [{**QUESTIONS[0], "answers": "Smith"}], "'answers' must be a list of texts"),
        (CORPUS, [{**QUESTIONS[0], "supports": ["d99"]}], "no passage 'd99'"),
        (CORPUS, [{**QUESTIONS[0], "split": "tests"}], "did you mean 'test'"),
        (CORPUS, [{**QUESTIONS[0], "support": ["d1"]}], "did you mean 'supports'"),
        (CORPUS, ["[" * 100_000], "line 1: this is no JSON"),
    ],
)
def test_a_fault_is_told_with_its_line(files, corpus: list[Any], questions: list[Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Search(**files(corpus, questions))


def test_too_many_supports_are_refused(files) -> None:
    with pytest.raises(ValueError, match="5 supports: at most 4 can be cited"):
        Search(**files(questions=[{**QUESTIONS[0], "supports": ["d1", "d2", "d3", "d4", "d5"]}]))
