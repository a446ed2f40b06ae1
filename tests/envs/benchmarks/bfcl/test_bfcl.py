"""BFCL's own answers are right, wrong ones are not, and no call reaches beyond its episode."""

import decimal
import importlib.util
import json
from collections.abc import Callable
from typing import Any

import pytest

from manyturn.envs.benchmarks.bfcl import package_data
from manyturn.envs.benchmarks.bfcl.env import BFCL, MOST_STEPS
from manyturn.envs.benchmarks.bfcl.package_data import INSTALL, KINDS, BfclMissing
from manyturn.envs.benchmarks.bfcl.world import gold_call
from manyturn.envs.tools.calls import call_text

pytestmark = pytest.mark.versions


@pytest.fixture(scope="module")
def bfcl() -> Callable[[str], BFCL]:
    """Makes the environment, once for each kind."""
    if importlib.util.find_spec("bfcl_eval") is None or importlib.util.find_spec("mpmath") is None:
        pytest.skip(f"the package bfcl-eval is not there: {INSTALL}")
    made: dict[str, BFCL] = {}
    return lambda kind="base": made.setdefault(kind, BFCL(kind=kind))


def play(env: BFCL, task: Any) -> dict[str, Any]:
    """The last info of an episode with the reference solution."""
    env.reset(seed=0, options={"task": task.id})
    while True:
        _, _, terminated, truncated, info = env.step(env.expert())
        if terminated or truncated:
            return info


@pytest.mark.parametrize(("kind", "step"), [(kind, 1 if kind == "base" else 10) for kind in KINDS])
def test_the_benchmarks_own_answers_succeed(kind: str, step: int, bfcl) -> None:
    env = bfcl(kind)
    tasks = env.tasks("test")
    assert len(tasks) == 200
    for task in tasks[::step]:
        assert play(env, task)["success"], task.id


def test_an_answer_without_its_last_call_fails(bfcl) -> None:
    env, passed = bfcl(), 0
    for task in env.tasks("test"):
        env.reset(seed=0, options={"task": task.id})
        last = max(number for number, turn in enumerate(env._gold) if turn)
        terminated = truncated = False
        while not (terminated or truncated):
            calls = env._gold[env._message][: -1 if env._message == last else None]
            for call in calls:
                env.step(call_text(call.name, **env._world.arguments(call)))
            _, _, terminated, truncated, info = env.step("Done.")
        passed += info["success"]
    assert passed <= 1


def test_calling_nothing_fails(bfcl) -> None:
    for kind in KINDS:
        env = bfcl(kind)
        for task in env.tasks("test")[::20]:
            env.reset(seed=0, options={"task": task.id})
            terminated = False
            while not terminated:
                _, reward, terminated, _, info = env.step("I cannot do that.")
            assert reward == 0.0 and not info["success"] and info["progress"] < 1


def test_no_more_than_twenty_steps_after_one_message(bfcl) -> None:
    env = bfcl()
    env.reset(seed=0, options={"task": "test/multi_turn_base_0"})
    for number in range(1, MOST_STEPS + 2):
        _, _, terminated, _, info = env.step(call_text("pwd"))
        assert terminated == (number == MOST_STEPS + 1)
    assert not info["success"]


def test_a_function_that_is_held_back_is_told_when_it_comes(bfcl) -> None:
    env = bfcl("miss_func")
    first, _ = env.reset(seed=0, options={"task": "test/multi_turn_miss_func_0"})
    assert '"name": "sort"' not in first and '"name": "mv"' in first
    seen = []
    for _ in range(7):
        seen.append(env.step(env.expert())[0])
    announced = [text for text in seen if "<tools>" in text]
    assert len(announced) == 1 and '"name": "sort"' in announced[0] and '"name": "mv"' not in announced[0]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("power", {"base": 10, "exponent": 10**15}),
        ("square_root", {"number": 2, "precision": 10**9}),
        ("logarithm", {"value": 2, "base": 3, "precision": 10**9}),
        ("round_number", {"number": 5, "decimal_places": -(10**15)}),
        ("mean", {"numbers": "no numbers"}),
        ("mean", {"self": 1}),
        ("mean", {"name": 1}),
        ("mean", {}),
    ],
)
@pytest.mark.timeout(60)
def test_no_call_hangs_or_breaks_the_episode(name: str, arguments: dict, bfcl) -> None:
    env = bfcl()
    task = next(task for task in env.tasks("test") if "MathAPI" in task.params["involved_classes"])
    env.reset(seed=0, options={"task": task.id})
    text, _, terminated, _, info = env.step(call_text(name, **arguments))
    assert "rror" in text and not terminated and info["understood"]


def test_a_precision_that_a_call_sets_stays_in_the_call(bfcl) -> None:
    import mpmath

    env = bfcl()
    task = next(task for task in env.tasks("test") if "MathAPI" in task.params["involved_classes"])
    env.reset(seed=0, options={"task": task.id})
    before = decimal.getcontext().prec, mpmath.mp.dps
    assert len(env.step(call_text("square_root", number=2, precision=50))[0]) > 20
    assert len(env.step(call_text("logarithm", value=2, base=3, precision=50))[0]) > 40
    assert (decimal.getcontext().prec, mpmath.mp.dps) == before


def test_an_episode_continues_from_a_snapshot_elsewhere(bfcl) -> None:
    env, copy = bfcl(), BFCL()
    for task in env.tasks("test")[::50]:
        env.reset(seed=0, options={"task": task.id})
        ended = False
        while not ended:
            copy.restore(env.snapshot())
            here, there = env.step(env.expert()), copy.step(copy.expert())
            assert here == there
            ended = here[2]


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    package_data.entries.cache_clear()
    with pytest.raises(BfclMissing, match="pip install --no-deps bfcl-eval"):
        BFCL()
    with pytest.raises(ValueError, match="choose base"):
        BFCL(kind="easy")


@pytest.mark.parametrize("text", ["__import__('os').system('true')", "f(open('x'))", "f(*[1])", "1", "f(x=g())"])
def test_a_reference_solution_is_read_and_never_run(text: str) -> None:
    with pytest.raises(ValueError):
        gold_call(text)
    call = gold_call("sort('a.txt', lines=[1, 2])")
    assert (call.name, call.places, json.loads(json.dumps(call.named))) == ("sort", ["a.txt"], {"lines": [1, 2]})
