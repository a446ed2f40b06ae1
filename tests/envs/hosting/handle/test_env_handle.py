"""One way to talk to every environment: ours and strangers must look alike, and faults must not look like rewards."""

import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.text_env import Unsupported
from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle
from manyturn.envs.hosting.handle.gymnasium_adapter import GymnasiumAdapter

HERE = Path(__file__).parents[2]
FAULTY = f"{HERE / 'faulty.py'}:Faulty"
STRANGER = f"{HERE / 'faulty.py'}:Stranger"


def stranger() -> EnvHandle:
    handle = EnvHandle(STRANGER)
    handle.reset(handle.tasks("train")[3], 0)
    return handle


@pytest.mark.parametrize("action", ["ABC", "toolong", "naïve", "", "x" * 100_000])
def test_an_action_outside_the_action_space_never_reaches_a_foreign_environment(action):
    handle = stranger()
    before = handle.step("abc")
    step = handle.step(action)
    assert (step.observation, step.understood, step.reward, step.parts) == (before.observation, False, 0.0, {})
    assert not step.ended and step.anchor == before.anchor
    assert handle.step("abc").understood


def test_a_foreign_success_is_what_the_end_says_or_else_what_it_paid():
    handle = stranger()
    assert handle.step("abc").success is None
    assert handle.step("stop").success is True and handle.foreign.success_by is None
    handle = stranger()
    step = handle.step("win")
    assert step.success is True
    assert (step.terminated, step.truncated, step.parts) == (True, False, {"outcome": 1.0})


def test_a_foreign_reward_before_the_end_is_no_outcome():
    assert stranger().step("abc").parts == {"step": 0.25}


def test_refused_actions_count_towards_the_limit_of_a_foreign_environment():
    env = GymnasiumAdapter(_limited(3))
    env.reset(seed=0)
    assert [env.step("NO")[3] for _ in range(3)] == [False, False, True]


def flagged(**flags) -> EnvHandle:
    """The stranger, whose every step says this of its action."""
    handle = stranger()
    env = handle.env.unwrapped
    ask = env.step
    env.step = lambda action: (*(told := ask(action))[:4], {**told[4], **flags})
    return handle


@pytest.mark.parametrize("key", ["valid", "is_action_valid", "actionIsValid", "invalid_action", "legal", "undersood"])
@pytest.mark.parametrize("value", [False, True, 0, np.bool_(False)])
def test_a_flag_of_a_turn_by_another_name_is_refused_and_ours_is_named(key, value):
    with pytest.raises(EnvError, match=re.escape(f"info[{key!r}], which is not read: give info['understood']")):
        flagged(**{key: value}).step("abc")
    assert flagged(**{key: value}, understood=False).step("abc").understood is False


def test_a_flag_of_the_format_is_asked_for_as_such():
    with pytest.raises(EnvError, match=re.escape("give info['format_valid'], False where none could be read")):
        flagged(is_format_valid=False).step("abc")


@pytest.mark.parametrize("reward", [1e308, -1e10, float("inf")])
def test_a_reward_that_learning_cannot_square_is_refused(reward):
    handle = stranger()
    env = handle.env.unwrapped
    ask = env.step
    env.step = lambda action: (ask(action)[0], reward, *ask(action)[2:])
    with pytest.raises(EnvError, match=r"divide it, so that it stays within 1e\+09|is inf: give a number"):
        handle.step("abc")


@pytest.mark.parametrize("key", ["valid_actions", "score", "won", "legal_moves", "turns", "format"])
def test_what_is_no_flag_of_a_turn_is_let_through(key):
    for value in (["abc"], 7, "abc", None):
        assert flagged(**{key: value}).step("abc").understood
    assert flagged(valid=["abc"]).step("abc").understood, "a list is no flag"


@pytest.mark.parametrize("value", ["no", None, 0.5, [False]])
def test_a_flag_that_is_no_truth_value_is_refused(value):
    with pytest.raises(EnvError, match="give True or False"):
        flagged(understood=value).step("abc")


def test_what_a_stranger_could_not_read_was_not_understood():
    step = flagged(format_valid=False).step("abc")
    assert (step.format_valid, step.understood) == (False, False)
    assert flagged(format_valid=False, understood=True).step("abc").understood


def _limited(turns: int) -> gymnasium.Env:
    env = EnvHandle(STRANGER).env.unwrapped
    env.max_turns = turns
    return env


def test_foreign_tasks_are_seeds_and_their_splits_are_disjoint():
    handle = EnvHandle(STRANGER)
    seeds = [handle.tasks(split)[i].params["seed"] for split in handle.splits for i in (0, -1)]
    assert len(set(seeds)) == len(seeds)
    first, second = handle.tasks("test")[0], handle.tasks("test")[1]
    assert handle.reset(first, 0) == handle.reset(first, 5)
    assert handle.reset(first, 0) != handle.reset(second, 0)


class Discrete(gymnasium.Env):
    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(2)


def test_an_environment_of_numbers_is_refused_with_the_mend():
    with pytest.raises(TypeError, match=r"manyturn.TextSpace\(\)"):
        EnvHandle(f"{__file__}:Discrete")


@pytest.mark.parametrize("action", ["raise", "exit", "endless"])
def test_whatever_the_environment_raises_is_an_env_error(action):
    handle = EnvHandle(FAULTY)
    handle.reset(handle.tasks("train")[0], 0)
    with pytest.raises(EnvError, match=r"in step 1 of train/0 \(faulty.py, line \d+, in (respond|<lambda>)\): "):
        handle.step(action)


def test_a_step_after_the_end_is_the_fault_of_the_caller():
    handle = EnvHandle(FAULTY)
    handle.reset(handle.tasks("train")[0], 0)
    handle.step("win")
    with pytest.raises(ResetNeeded):
        handle.step("win")


def test_the_seed_decides_what_is_random_in_an_episode_and_the_task_what_it_is_about():
    handle = EnvHandle(FAULTY)
    task = handle.tasks("train")[5]
    assert handle.reset(task, 1) == handle.reset(task, 1) != handle.reset(task, 2)
    assert handle.reset(task, 2).observation.startswith("hello 5 ")


def test_a_split_or_an_ability_that_is_missing_is_named():
    handle = EnvHandle(STRANGER)
    with pytest.raises(ValueError, match="it has train, validation, test"):
        handle.tasks("tset")
    with pytest.raises(Unsupported, match="no expert"):
        handle.expert()
    assert EnvHandle(FAULTY).has_expert and not handle.has_expert
