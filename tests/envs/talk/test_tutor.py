"""Tutoring: chance as the model says, order matters, and a tutor that only traces does well."""

import numpy as np
import pytest

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.talk.tutor.env import LEVELS, Tutor
from manyturn.envs.talk.tutor.pupil import EXPLAINED, EXPLAINED_AFTER_FAILURE, GUESS, SLIP, Pupil, Tracer


def share(trial, count: int = 4000) -> float:
    rng = generator("share")
    return sum(trial(rng) for _ in range(count)) / count


def taught(first_fails: bool, known=(True, False)):
    def trial(rng: np.random.Generator) -> bool:
        pupil = Pupil(known, 1.0, rng)
        pupil.failed = 1 if first_fails else None
        pupil.explain(1)
        return pupil.mastery[1]

    return trial


def test_chances_are_those_of_the_model():
    assert share(lambda rng: Pupil([True], 1.0, rng).exercise(0)) == pytest.approx(1 - SLIP, abs=0.03)
    assert share(lambda rng: Pupil([False], 1.0, rng).exercise(0)) == pytest.approx(GUESS, abs=0.03)
    assert share(taught(False)) == pytest.approx(EXPLAINED, abs=0.03)
    assert share(taught(True)) == pytest.approx(EXPLAINED_AFTER_FAILURE, abs=0.03)


def test_nothing_is_learnt_without_the_skill_before_it():
    assert share(taught(True, known=(False, False)), 200) == 0


def test_tracing_follows_bayes_rule():
    tracer = Tracer(2)
    tracer.see(0, True)
    assert tracer.belief[0] == pytest.approx(0.5 * 0.9 / (0.5 * 0.9 + 0.5 * 0.2))
    tracer.see(0, False)
    before = tracer.belief[0]
    assert before == pytest.approx(9 / 11 * 0.1 / (9 / 11 * 0.1 + 2 / 11 * 0.8))
    tracer.taught(1, 0.85)
    assert tracer.belief[1] == pytest.approx(0.5 + 0.5 * 0.85 * before)


def traced(env: Tutor, belief: list[float]) -> str:
    """A tutor that knows only what answers tell."""
    weak = next((n for n, known in enumerate(belief) if known < 0.95), None)
    if weak is None:
        return "test"
    failed = env.admissible()[-2] == "hint"
    skill = env.task.params["skills"][weak]
    return f"explain {skill}" if failed and env._pupil.failed == weak else f"exercise {skill}"


@pytest.mark.parametrize("difficulty", LEVELS)
def test_a_tutor_that_only_traces_teaches_most(difficulty):
    env, total, perfect = Tutor("test", difficulty), 0.0, 0
    for number in range(60):
        info = env.reset(seed=number, options={"task": f"test/{difficulty}/{number}"})[1]
        ended = False
        while not ended:
            _, reward, terminated, truncated, info = env.step(traced(env, info["belief"]))
            total, ended = total + reward, terminated or truncated
        perfect += info["success"]
    assert total / 60 > 0.75 and perfect / 60 > 0.55


def test_the_test_pays_the_gain_whenever_it_is_taken():
    env = Tutor()
    env.reset(seed=1)
    assert env.step("test")[1:3] == (0.0, True)
    env.reset(seed=1)
    for turn in range(env.max_turns):
        text, reward, ended, truncated, info = env.step("lorem")
        assert not truncated and not info["understood"] and ended is (turn + 1 == env.max_turns)
    assert "Test:" in text and reward == 0


def test_a_lesson_without_a_test_ends_with_one():
    env = Tutor()
    env.reset(seed=1)
    for turn in range(env.max_turns):
        text, _, ended, truncated, info = env.step(f"exercise {env.task.params['skills'][0]}")
        assert not truncated and ended is (turn + 1 == env.max_turns)
    assert "Test:" in text and info["reward_parts"] == {"outcome": env.progress()}


def test_the_gain_counts_only_what_was_unknown():
    env = Tutor()
    env.reset(seed=1)
    unknown = [n for n, known in enumerate(env.task.params["known"]) if not known]
    env._pupil.mastery[unknown[0]] = True
    *_, info = env.step("Now the test: test")
    assert info["reward_parts"] == {"outcome": 1 / len(unknown)}


@pytest.mark.parametrize(
    "text", ["", "hint", "explain", "explain astrology", "I will not explain this", "test it", "examtest"]
)
def test_what_is_no_command_teaches_nothing(text):
    env = Tutor()
    env.reset(seed=1)
    known, belief = list(env._pupil.mastery), list(env._tracer.belief)
    *_, info = env.step(text)
    assert not info["understood"] and env._pupil.mastery == known and env._tracer.belief == belief


def test_a_hint_needs_a_failed_exercise_and_is_good_for_one():
    env = Tutor()
    for seed in range(50):
        env.reset(seed=seed)
        env.step(f"exercise {env.task.params['skills'][-1]}")
        if env._pupil.failed is not None:
            assert "hint" in env.admissible()
            assert env.step("hint")[4]["understood"] and "hint" not in env.admissible()
            return
    pytest.fail("no exercise of fifty went wrong")
