"""A query must be right on other rows too, near misses must earn less, and chance must earn nothing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.tasks.task import Task, is_held_out
from manyturn.envs.sql.env import SQL
from manyturn.envs.sql.grading import PARTS
from manyturn.envs.sql.question import Question, english, query
from manyturn.envs.sql.question_generator import LEVELS, neighbours
from manyturn.envs.sql.schema import Schema
from manyturn.envs.sql.tasks import DATABASES, database_of
from manyturn.envs.tools.calls import call_text

ID = "manyturn/SQL-v0"


def submitted(env: SQL, sql: str) -> dict[str, Any]:
    *_, info = env.step(call_text("submit", sql=sql))
    return info


@pytest.mark.parametrize("level", LEVELS)
def test_the_expert_answers_every_question_and_chance_hardly_any(level: str) -> None:
    env, lucky, rng = SQL(difficulty=level), 0, generator("by chance", level)
    for split in env.splits:
        for task in env.tasks(split)[:15]:
            _, info = env.reset(seed=0, options={"task": task})
            while "success" not in info:
                action = env.expert()
                assert action in info["admissible"]
                *_, info = env.step(action)
            assert info["success"] and info["reward_parts"] == {"outcome": 1.0} and info["progress"] == 1.0, task.id
            assert set(info["measures"].values()) == {1.0}
            _, info = env.reset(seed=1, options={"task": task})
            while "success" not in info:
                *_, info = env.step(info["admissible"][int(rng.integers(len(info["admissible"])))])
            lucky += info["success"]
    assert lucky <= 6  # of 60


def test_a_result_written_as_constants_does_not_pay() -> None:
    env = make(ID, difficulty="hard").unwrapped
    assert isinstance(env, SQL)
    for number in range(12):
        env.reset(options={"task": f"test/hard/{number}"})
        right = database_of(env.task.params, DATABASES[0]).run(query(env._schema, env._question)).rows
        lines = [f"SELECT {', '.join(map(repr, row))}" for row in right]
        info = submitted(env, " UNION ALL ".join(lines[:8]))
        assert not info["success"] and info["measures"]["columns"] == 0.0
        assert len(lines) > 8 or info["measures"]["overlap"] == 1.0  # the episode's own rows cannot tell


@pytest.mark.parametrize("level", LEVELS)
def test_a_query_with_one_slot_changed_is_wrong_unless_its_results_are_the_same(level: str) -> None:
    env = SQL(difficulty=level, rewards="turns")
    wrong = 0
    for number in range(8):
        for near in list(neighbours(*_posed(env, f"train/{level}/{number}")))[:4]:
            env.reset(options={"task": f"train/{level}/{number}"})
            info = submitted(env, query(env._schema, near))
            parts = info["reward_parts"]
            wrong += not info["success"]
            assert parts["executes"] == PARTS["executes"] and sum(parts.values()) < (1.31 if info["success"] else 0.31)
    assert wrong >= 12


def _posed(env: SQL, task: str) -> tuple[Schema, Question]:
    env.reset(options={"task": task})
    return env._schema, env._question


def test_other_words_for_the_right_query_are_right() -> None:
    env = SQL(difficulty="tiny")
    number = next(n for n in range(50) if env.tasks("train")[n].tags == ("count",))
    schema, question = _posed(env, f"train/tiny/{number}")
    table, condition = schema.tables[question.table], question.filters[0]
    sql = f"select sum(1) as n from {table.name} t where not t.{condition.column} <> '{condition.value}'"
    assert submitted(env, sql)["success"]


def test_rows_in_another_order_are_right_unless_the_question_asks_for_an_order() -> None:
    env = SQL(difficulty="easy")
    for kind, is_right in (("list", True), ("top", False)):
        places = [n for n in range(200) if env.tasks("train")[n].tags == (kind,)]
        for number in places[:5]:
            schema, question = _posed(env, f"train/easy/{number}")
            label = schema.tables[question.table].label
            reverse = f"SELECT {label} FROM ({query(schema, question)}) ORDER BY {label}"
            rows = [env._open().run(text).rows for text in (reverse, query(schema, question))]
            other = [
                database_of(env.task.params, DATABASES[1]).run(text).rows for text in (reverse, query(schema, question))
            ]
            unchanged = rows[0] == rows[1] and other[0] == other[1]
            assert submitted(env, reverse)["success"] == (is_right or unchanged)


def test_names_cannot_be_guessed_before_they_are_read() -> None:
    """Above the lowest level some names differ from the words of the question, in one style for each schema."""
    env = SQL(difficulty="medium")
    styles = {task.params["schema"]["style"] for task in env.tasks("train")[:60]}
    assert len(styles) == 4
    _, info = env.reset(options={"task": "train/medium/0"})
    assert [call for call in info["admissible"] if "submit" in call or "describe" in call] == []


@pytest.mark.parametrize("level", LEVELS)
def test_unseen_tables_occur_in_no_other_split(level: str) -> None:
    env = SQL(difficulty=level)
    for split in env.splits:
        for task in env.tasks(split)[:40]:
            for table in task.params["schema"]["tables"]:
                structure = (table["noun"], sorted(table["categories"]), sorted(table["numbers"]))
                assert is_held_out("sql table", *structure) == (split == "test_unseen")


@pytest.mark.parametrize("level", ["tiny", "hard"])
def test_no_question_of_training_is_asked_again_in_the_same_words(level: str) -> None:
    env = SQL(difficulty=level)
    words = {
        split: {_english(task) for task in env.tasks(split)[: 600 if split == "train" else 60]} for split in env.splits
    }
    for split, others in {"train": env.splits[1:], "validation": ("test", "test_unseen")}.items():
        assert all(words[split].isdisjoint(words[other]) for other in others)


def _english(task: Task) -> str:
    return english(Schema(task.params["schema"]), Question.of(task.params["question"]))


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_tasks_of_a_split_differ_in_content(count: int) -> None:
    for level in ("tiny", "hard"):
        assert len({task.content for task in SQL(difficulty=level).tasks("train")[:count]}) == count


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=60), st.builds(lambda s: call_text("run_query", sql=s), st.text(max_size=80))))
)
def test_any_text_is_answered_and_none_of_it_succeeds(actions: list[str]) -> None:
    env = SQL(difficulty="tiny")
    env.reset(seed=0)
    for action in actions[:6]:
        text, reward, terminated, truncated, info = env.step(action)
        assert text and reward == 0.0 and not info.get("success")
        if terminated or truncated:
            break


@pytest.mark.deep
@pytest.mark.parametrize("level", LEVELS)
def test_the_conformance_check_passes(level: str) -> None:
    report = check(ID, {"difficulty": level, "rewards": "turns"}, samples=3)
    assert report.passed, str(report)
