"""WebShop must be a true Gymnasium environment that can be replayed, branched and fed with anything."""

import tracemalloc
import warnings
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.wrappers.reward_wrapper import wrap
from manyturn.envs.shop.pages.page_text import MODES
from manyturn.envs.shop.webshop_env import WebShop

ID = "manyturn/WebShop-v0"
ACTIONS = st.lists(st.integers(0, 99), max_size=16)
ODD = [
    "",
    "search[",
    "search[🙂]",
    "search[<r>]",
    "search[<a>]",
    "\ud800",
    "search[\ud800]",
    "x" * 100_000,
    "click[search]",
]
KWARGS = [{}, {"goals": "human"}, {"mode": "text_rich"}, {"reward": "strict"}]


def play(env: WebShop, choices: list[int]) -> list[tuple]:
    """The steps of a policy that follows the expert, clicks by lot, or writes something odd."""
    record: list[tuple] = []
    for choice in choices:
        listed = env.admissible()
        action = (
            env.expert() if choice < 45 else ODD[choice % len(ODD)] if choice > 85 else listed[choice % len(listed)]
        )
        record.append((action, env.step(action)))
        if record[-1][1][2] or record[-1][1][3]:
            break
    return record


@pytest.mark.parametrize("kwargs", KWARGS)
def test_gymnasium_finds_nothing_to_object_to(small: Path, kwargs: dict) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(ID, data=small, **kwargs).unwrapped, skip_render_check=True)


@pytest.mark.deep
@pytest.mark.parametrize("kwargs", [{}, {"goals": "human", "mode": "text_rich", "reward": "strict"}])
def test_the_conformance_check_passes(small: Path, kwargs: dict) -> None:
    report = check(ID, {"data": str(small), **kwargs}, samples=4)
    assert report.passed, str(report)


def test_the_conformance_check_passes_on_a_thousand_products(recorded: Path) -> None:
    for kwargs in ({"goals": "human"}, {"mode": "text_rich", "original": 7}):
        report = check(ID, {"data": str(recorded), **kwargs}, samples=4)
        assert report.passed, str(report)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KWARGS), st.integers(0, 2**40), ACTIONS)
def test_task_and_actions_determine_the_episode(small: Path, kwargs: dict, seed: int, choices: list[int]) -> None:
    one, other = WebShop("train", small, **kwargs), WebShop("train", small, **kwargs)
    other.reset(seed=seed + 1)
    play(other, choices[::-1])
    assert one.reset(seed=seed) == other.reset(seed=seed)
    assert play(one, choices) == play(other, choices)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KWARGS), st.integers(0, 2**40), ACTIONS, ACTIONS)
def test_a_snapshot_continues_as_if_nothing_had_happened(
    small: Path, kwargs: dict, seed: int, before: list[int], after: list[int]
) -> None:
    env, fresh = WebShop("test", small, **kwargs), WebShop("test", small, **kwargs)
    env.reset(seed=seed)
    record = play(env, before)
    data = env.snapshot()
    fresh.restore(data)
    assert fresh.snapshot() == data and fresh.observation == env.observation
    if not record or not (record[-1][1][2] or record[-1][1][3]):
        expected = play(env, after)
        assert play(fresh, after) == expected
        env.restore(data)
        assert env.snapshot() == data and play(env, after) == expected


@pytest.mark.parametrize("kind", ["synthetic", "human"])
@pytest.mark.parametrize("folder", ["small", "recorded"])
def test_the_expert_buys_what_every_goal_asks_for(folder: str, kind: str, request) -> None:
    env = WebShop("test", request.getfixturevalue(folder), kind)
    for task in env.tasks("test"):
        env.reset(seed=0, options={"task": task})
        assert play(env, [0] * env.max_turns)[-1][1][1] == 1.0, task.id
        score = env.score()
        assert score is not None and score.strict == 1.0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**40), ACTIONS)
def test_the_anchor_tells_apart_what_the_text_hides(small: Path, seed: int, choices: list[int]) -> None:
    env = WebShop("train", small, max_turns=100)
    env.reset(seed=seed)
    play(env, choices)
    if "click[large]" in env.admissible():
        text = env.step("click[x-large]")[0]
        before = env.anchor()
        again, *_, info = env.step("click[large]")
        assert again == text and info["anchor"] != before
        assert env.step("click[large]")[-1]["anchor"] == info["anchor"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**40), ACTIONS)
def test_progress_is_what_buying_now_would_bring(small: Path, seed: int, choices: list[int]) -> None:
    env = WebShop("train", small, max_turns=100)
    env.reset(seed=seed)
    for _, (_, reward, terminated, _, info) in play(env, choices):
        if terminated:
            assert info["progress"] == reward
    if env._live:
        worth = env.progress()
        if "click[buy now]" in env.admissible():
            assert env.step("click[buy now]")[1] == worth
        else:
            score = env.score()
            assert worth == (score.official if score else 0.0)


def test_progress_can_be_paid_turn_by_turn(small: Path) -> None:
    env = wrap(make(ID, data=small), [{"name": "progress_reward"}])
    _, info = env.reset(seed=3)
    paid, ended = [], False
    while not ended:
        *_, terminated, truncated, info = env.step(env.unwrapped.expert())
        paid.append(info["reward_parts"]["progress"])
        ended = terminated or truncated
    assert sum(paid) == pytest.approx(0.0) and max(paid) > 0


def test_an_environment_adds_little_to_the_first(recorded: Path) -> None:
    first = WebShop("train", recorded)
    first.reset(seed=0)
    play(first, [0] * 15)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    others = [WebShop("train", recorded) for _ in range(20)]
    for env in others:
        env.reset(seed=0)
        play(env, [0] * 3)
    each = (tracemalloc.get_traced_memory()[0] - before) / len(others)
    tracemalloc.stop()
    assert each < 20 * 1024


def test_a_task_of_other_files_is_refused(small: Path, recorded: Path) -> None:
    task = WebShop("train", small).tasks("train")[0]
    with pytest.raises(ValueError, match="files have changed"):
        WebShop("train", recorded).reset(seed=0, options={"task": task})


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"goals": "robot"}, "synthetic, human"),
        ({"mode": "html"}, ", ".join(MODES)),
        ({"reward": "kind"}, "official, strict, spacy"),
        ({"split": "dev"}, "train, validation, test"),
        ({"split": "validation", "original": 7}, "has test"),
        ({"max_turns": 0}, "at least 1"),
        ({"data": None}, "princeton-nlp/WebShop"),
    ],
)
def test_a_wrong_option_names_the_right_ones(small: Path, kwargs: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WebShop(**{"data": small, **kwargs})
