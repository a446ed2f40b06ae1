"""Only the right number counts, the interpreter finds it, and without an engine the reason is told."""

import json
from typing import Any

import pytest

from manyturn.envs.code_interpreter.env import Code
from manyturn.envs.code_interpreter.tasks import LEVELS, answer
from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.tools.calls import call_text


def python(code: str) -> str:
    return call_text("python", code=code)


@pytest.fixture
def env(engine: str) -> Code:
    made = Code(difficulty="medium")
    made.reset(seed=0, options={"task": "test/medium/5"})
    return made


def finish(env: Code) -> dict[str, Any]:
    while True:
        *_, terminated, truncated, info = env.step(env.expert())
        if terminated or truncated:
            return info


@pytest.mark.deep
@pytest.mark.parametrize("level", LEVELS)
def test_the_expert_computes_the_answer(engine: str, level: str) -> None:
    env = Code(difficulty=level)
    for split in env.splits:
        for task in env.tasks(split)[:3]:
            env.reset(seed=0, options={"task": task})
            info = finish(env)
            assert (info["success"], info["turn"]) == (True, LEVELS[level] + 1), task.id


def test_the_expert_goes_on_from_what_others_have_computed(env: Code) -> None:
    env.step(env.expert())
    env.step(python("A += 0\nprint(A)"))
    env.step(env.expert())
    env.step(python("print('something else')"))
    assert finish(env)["success"]


@pytest.mark.parametrize(
    ("spelled", "right"),
    [("{}", True), (" +{} ", True), ("00{}", True), ("{}0", False), ("-{}", False), ("{}.0", None), ("{},", None)],
)
def test_an_answer_counts_if_it_is_that_whole_number(engine: str, spelled: str, right: bool | None) -> None:
    env = Code()
    env.reset(seed=0, options={"task": "test/easy/1"})
    number = answer(env.task.params)
    assert number > 0
    text, reward, terminated, _, info = env.step(call_text("answer", value=spelled.format(number)))
    assert (terminated, info.get("success"), reward) == (right is not None, right, float(bool(right)))
    if right is None:
        assert "not an integer" in text
        assert env.step(json.dumps({"name": "answer", "arguments": {"value": number}}))[-1]["success"]


def test_a_snapshot_carries_the_interpreter_into_another_process(env: Code) -> None:
    env.step(python("x = [1, 2]"))
    env.step(python("x.append(3)"))
    other = Code(difficulty="medium")
    other.restore(env.snapshot())
    assert other.step(python("print(x)"))[0] == "[1, 2, 3]" == env.step(python("print(x)"))[0]
    assert env.anchor() == other.anchor()
    env.step(python("print(x)"))
    assert env.anchor() != other.anchor()


def test_what_is_no_call_is_answered_with_text(env: Code) -> None:
    for action in ("42", '{"name": "bash", "arguments": {}}', '{"name": "python", "arguments": {"code": 3}}', "[]"):
        text, reward, terminated, _, info = env.step(action)
        assert text.startswith("Error: ") and (reward, terminated, info["understood"]) == (0.0, False, False)


@pytest.mark.slow
def test_the_conformance_check_passes(engine: str) -> None:
    report = check("manyturn/Code-v0", samples=1)
    assert report.passed, str(report)


def test_what_is_missing_is_told_in_one_line(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="engine: imagee"):
        Code(engine={"imagee": "x"})
    with pytest.raises(NeedsSetup, match="no-such-image"):
        Code(engine={"image": "no-such-image:1"})
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/s.sock")
    with pytest.raises(NeedsSetup, match="DOCKER_HOST") as found:
        Code()
    assert "\n" not in str(found.value)


def test_a_wrong_difficulty_is_told_before_an_engine_is_asked_for() -> None:
    with pytest.raises(ValueError, match="easy, medium, hard"):
        Code(difficulty="harder")
