"""Learning rates that are not those of the schedule that a recipe names, and schedules that never get there."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from short_runs import resumed_to_the_bit, short_run

from manyturn.envs.contract.options.options import ConfigError
from manyturn.recipes import load_recipe
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.rate_schedule import rate_share, warmup_steps
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics


def shares(steps, **options):
    config = LearnerConfig(**options)
    return [rate_share(config, step, steps) for step in range(1, steps + 1)]


def theirs(step, steps, rise, end):
    """verl's cosine with warm-up at a step, from 0, after its warm-up."""
    progress = (step - rise) / max(1, steps - rise)
    return max(end, math.cos(math.pi * 0.5 * 2.0 * progress) * (1 - end) * 0.5 + (1 + end) * 0.5)


@given(
    steps=st.integers(1, 60),
    end=st.floats(0, 1),
    warmup=st.one_of(st.floats(0, 0.99), st.integers(1, 40)),
    schedule=st.sampled_from(["constant", "linear", "cosine"]),
)
def test_a_rate_never_rises_again_nor_is_a_step_played_in_vain(steps, end, warmup, schedule):
    options = {"lr_schedule": schedule, "lr_warmup": warmup} | ({} if schedule == "constant" else {"lr_end": end})
    found, rise = shares(steps, **options), warmup_steps(LearnerConfig(**options), steps)
    assert all(0 < share <= 1 for share in found[: rise + 1])
    assert found[:rise] == sorted(found[:rise]) and found[rise:] == sorted(found[rise:], reverse=True)
    if rise < steps:
        assert found[rise] == 1, "its height is reached at the step after the warm-up"
        assert found[rise:] == [1.0] * (steps - rise) if schedule == "constant" else found[-1] >= end - 1e-12


@given(steps=st.integers(2, 60), end=st.floats(0, 1), rise=st.integers(0, 20))
def test_a_cosine_is_that_of_the_authors_code(steps, end, rise):
    found = shares(steps, lr_schedule="cosine", lr_end=end, lr_warmup=rise)
    expected = [theirs(step, steps, rise, end) for step in range(rise, steps)]
    assert found[rise:] == pytest.approx(expected, abs=1e-12)


def test_the_default_falls_in_a_line_to_a_tenth():
    assert shares(10) == [1 - (1 - 0.1) * (step / 10) for step in range(10)], "to the bit, as runs before had it"


def test_a_run_learns_at_the_rates_of_its_schedule_and_goes_on_with_them(tmp_path):
    learner = {"minibatch": 3, "lr_schedule": "cosine", "lr_end": 0.2, "lr_warmup": 0.5}
    calm = resumed_to_the_bit(short_run(steps=4, learner=learner, evaluation={"limit": 3}), tmp_path)
    rates = [line["lr"] for line in read_metrics(calm) if line["phase"] == "train"]
    assert rates == pytest.approx([5e-4 * share for share in (1 / 3, 2 / 3, 1, 0.6)])


def test_a_warmup_that_lasts_longer_than_the_run_is_refused():
    with pytest.raises(ConfigError, match=r"lr_warmup = 10 steps are not over in 10.*such as to 0.1"):
        short_run(steps=10, learner={"minibatch": 3, "lr_warmup": 10})
    assert short_run(steps=11, learner={"minibatch": 3, "lr_warmup": 10}).learner.lr_warmup == 10
    with pytest.raises(ConfigError, match=r"2\.5 is neither a share of the run"):
        LearnerConfig(lr_warmup=2.5)


def test_an_end_that_a_constant_rate_never_has_is_refused():
    recipe = {"env": {"id": "manyturn/Maze-v0"}, "learner": {"lr_schedule": "constant"}}
    with pytest.raises(ConfigError, match=r"learner.lr_end has no effect with learner.lr_schedule = 'constant'"):
        configure(recipe, {"learner": {"lr_end": 0.5}})


def test_epo_has_the_schedule_of_its_authors():
    assert load_recipe("epo")["learner"] == {"lr_schedule": "cosine", "lr_end": 0.2, "lr_warmup": 0.1}
