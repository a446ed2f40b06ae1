"""The environment must be a true Gymnasium environment that can be replayed, branched and fed with anything."""

import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.builtin_envs import register_all
from manyturn.envs.household.env import Household
from manyturn.envs.household.layouts import LEVELS

pytestmark = pytest.mark.versions

register_all()
ODD = [
    "",
    " ",
    "\n",
    "go to",
    "go to cabinet",
    "GO TO CABINET 1",
    "漢字 🙂 é ß",
    "\ud800",
    "take  a 1 from b 1",
    "\0",
    "x" * 100_000,
]


def episode(env: Household, task: str, choices: list[int]) -> list[tuple]:
    record = [env.reset(seed=3, options={"task": task})]
    for choice in choices:
        listed = record[-1][-1]["admissible"]
        record.append(env.step(listed[choice % len(listed)]))
        if record[-1][2] or record[-1][3]:
            break
    return record


@pytest.mark.parametrize(
    "kwargs", [{}, {"difficulty": "tiny"}, {"difficulty": "hard", "kinds": ["two"], "grammar": "put"}]
)
def test_gymnasium_finds_nothing_to_object_to(kwargs: dict) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("manyturn/Household-v0", disable_env_checker=True, **kwargs)
        check_env(env.unwrapped, skip_render_check=True)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(LEVELS)), st.integers(0, 5000), st.lists(st.integers(0, 99), max_size=40))
def test_task_and_actions_determine_the_episode(level: str, number: int, choices: list[int]) -> None:
    task = f"train/{level}/{number}"
    assert episode(Household("train", level), task, choices) == episode(Household("train", level), task, choices)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(LEVELS)),
    st.integers(0, 5000),
    st.lists(st.integers(0, 99), max_size=19),
    st.lists(st.integers(0, 99), min_size=1, max_size=20),
)
def test_a_snapshot_continues_as_if_nothing_had_happened(level: str, number: int, before: list, after: list) -> None:
    env = Household("train", level)
    record = episode(env, f"train/{level}/{number}", before)
    if len(record[-1]) == 5 and (record[-1][2] or record[-1][3]):
        return
    data = env.snapshot()

    def onward(env: Household) -> list[tuple]:
        steps = []
        for choice in after:
            listed = env.admissible()
            expert = env.expert()
            steps.append((expert, env.step(expert if choice < 25 else listed[choice % len(listed)])))
            if steps[-1][1][2] or steps[-1][1][3]:
                break
        return steps

    first = onward(env)
    env.restore(data)
    assert env.snapshot() == data
    assert onward(env) == first
    fresh = Household("train", level)
    fresh.restore(data)
    assert fresh.snapshot() == data
    assert onward(fresh) == first


def test_odd_actions_are_invalid_and_change_nothing() -> None:
    env = Household("train", "medium")
    _, info = env.reset(seed=0, options={"task": "train/medium/5"})
    for action in ODD:
        text, reward, terminated, truncated, new = env.step(action)
        assert (text, reward, terminated, truncated) == ("Nothing happens.", 0.0, False, False)
        assert (
            new["understood"] is False
            and new["admissible"] == info["admissible"]
            and new["progress"] == info["progress"]
        )


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(list(LEVELS)), st.integers(0, 5000), st.lists(st.integers(0, 99), max_size=50))
def test_listed_commands_are_valid_and_the_list_is_sorted_without_repeats(
    level: str, number: int, choices: list
) -> None:
    env = Household("train", level)
    for result in episode(env, f"train/{level}/{number}", choices):
        info = result[-1]
        assert info["understood"] and info["admissible"] == sorted(set(info["admissible"]))
        assert 0.0 <= info["progress"] <= 1.0
        if len(result) == 5:
            assert result[1] == sum(info["reward_parts"].values())
            assert (info["progress"] == 1.0) == result[2] == (result[1] == 1.0)


def test_a_caller_who_changes_the_list_does_not_change_the_environment() -> None:
    env = Household("train")
    _, info = env.reset(seed=0)
    kept = list(info["admissible"])
    info["admissible"].clear()
    assert env.admissible() == kept and env.step("look")[-1]["admissible"] == kept


def test_a_random_policy_does_not_solve_what_needs_searching() -> None:
    env, solved = Household("test", "medium"), 0
    for i in range(40):
        rng = generator("random policy", i)
        _, info = env.reset(seed=i)
        while "success" not in info:
            *_, info = env.step(info["admissible"][int(rng.integers(len(info["admissible"])))])
        solved += info["success"]
    assert solved <= 4


def test_progress_counts_what_the_expert_does() -> None:
    for kind in LEVELS["hard"].kinds:
        env = Household("test", "hard", kind)
        _, info = env.reset(seed=1)
        seen = [info["progress"]]
        while "success" not in info:
            *_, info = env.step(env.expert())
            seen.append(info["progress"])
        assert seen[0] == 0.0 and seen[-1] == 1.0 and len(set(seen)) >= 4 and seen == sorted(seen)


def test_the_anchor_tells_texts_apart_and_not_the_door_left_open_elsewhere() -> None:
    env = Household("train", "easy")
    env.reset(seed=0, options={"task": "train/easy/3"})
    doors = [c for c in env.admissible() if c.startswith(("go to cabinet", "go to drawer", "go to fridge"))]
    other = next(c for c in env.admissible() if c not in doors and c.startswith("go to "))
    first = env.step(other)[-1]["anchor"]
    env.step(doors[0])
    opened = env.step(doors[0].replace("go to", "open"))[-1]["anchor"]
    assert env.step(other)[-1]["anchor"] == first != opened


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"difficulty": "nightmare"}, "tiny, easy, medium, hard"),
        ({"kinds": ["fly"]}, "choose from put"),
        ({"difficulty": "tiny", "kinds": "two"}, "choose from put"),
        ({"kinds": []}, "choose from"),
        ({"grammar": "latin"}, "move or put"),
        ({"split": "valid_seen"}, "test_unseen"),
        ({"games": ".", "difficulty": "easy"}, "leave out one"),
        ({"max_turns": 0}, "at least 1"),
    ],
)
def test_a_wrong_option_names_the_right_ones(kwargs: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Household(**kwargs)
