"""Guess a number: what is true must be said, halving must suffice, and luck must not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.classics.guess_number import LEVELS, GuessNumber
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task


def begun(low: int = 5, high: int = 19, secret: int = 8) -> GuessNumber:
    env = GuessNumber()
    env.reset(seed=0, options={"task": Task("one", "train", {"low": low, "high": high, "secret": secret})})
    return env


def test_answers_are_true_and_only_the_secret_pays():
    env = begun()
    assert env.observation == "I am thinking of a number from 5 to 19."
    assert env.step("guess 7")[:4] == ("7 is too low.", 0.0, False, False)
    assert env.step("guess 9")[:4] == ("9 is too high.", 0.0, False, False)
    text, reward, terminated, truncated, info = env.step("guess 8")
    assert (text, reward, terminated, truncated) == ("The number is 8. You found it.", 1.0, True, False)
    assert info["success"] is True and info["progress"] == 1 and info["reward_parts"] == {"outcome": 1.0}


@pytest.mark.parametrize(
    "action", ["8", "guess", "guess 4", "guess 20", "guess -8", "guess 8 ", "guess ٨", "guess 8\n"]
)
def test_what_is_no_guess_is_invalid_and_costs_a_turn(action):
    env = begun()
    *_, info = env.step(action)
    assert not info["understood"] and info["turn"] == 1 and not info.get("success")


@pytest.mark.parametrize("difficulty", LEVELS)
@given(number=st.integers(0, 9_999), split=st.sampled_from(GuessNumber.splits))
def test_the_expert_needs_one_turn_less_than_allowed(difficulty, number, split):
    env = GuessNumber(split, difficulty)
    env.reset(seed=0, options={"task": f"{split}/{difficulty}/{number}"})
    for _ in range(LEVELS[difficulty].turns - 1):
        *_, terminated, truncated, info = env.step(env.expert())
        if terminated:
            break
    assert info["success"] and not truncated


@pytest.mark.parametrize(("difficulty", "at_most"), [("easy", 0.45), ("medium", 0.2)])
def test_luck_mostly_fails(difficulty, at_most):
    env = GuessNumber(difficulty=difficulty)
    rng, won, ended = generator("luck"), 0, False
    for number in range(200):
        env.reset(seed=0, options={"task": f"test/{difficulty}/{number}"})
        ended = False
        while not ended:
            able = env.admissible()
            *_, terminated, truncated, info = env.step(able[int(rng.integers(len(able)))])
            ended = terminated or truncated
        won += info["success"]
    assert 0 < won / 200 < at_most


def test_the_anchor_is_what_is_known_whatever_the_way_there():
    one, two = begun(), begun()
    for action in ("guess 7", "nonsense", "guess 12"):
        one.step(action)
    for action in ("guess 12", "guess 5", "guess 7", "guess 15"):
        two.step(action)
    assert one.anchor() == two.anchor() != begun().anchor()


def test_long_ranges_are_not_listed_and_a_wrong_difficulty_is_refused():
    env = GuessNumber(difficulty="hard")
    env.reset(seed=0)
    assert env.admissible() is None
    with pytest.raises(ValueError, match="easy, medium, hard"):
        GuessNumber(difficulty="hrad")
    assert begun().admissible() == [f"guess {n}" for n in range(5, 20)]
