"""A head that says something else than the least squares of what it saw, or that forgets itself in a checkpoint."""

import numpy as np
import pytest
import torch

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.heads.head_config import ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.heads.head_fits import GradientFit, LeastSquaresFit, fit_of, with_one
from manyturn.trainers.learn.heads.heads import ProgressHead

LIKE, D = torch.zeros(1), 8


def solved(**options):
    return LeastSquaresFit("value", ValueHeadConfig(fit="least_squares", **options), D, LIKE)


def drawn(number, rows=40):
    rng = generator("states", number)
    return torch.from_numpy(rng.standard_normal((rows, D))), torch.from_numpy(rng.standard_normal(rows))


def by_numpy(steps, ridge, keep):
    """The same weights out of one stack of rows, each shrunk by the square root of its weight."""
    ages = [len(steps) - 1 - number for number in range(len(steps))]
    rows = np.concatenate([keep ** (age / 2) * with_one(x).numpy() for (x, _), age in zip(steps, ages, strict=True)])
    wanted = np.concatenate([keep ** (age / 2) * y.numpy() for (_, y), age in zip(steps, ages, strict=True)])
    rows, wanted = np.vstack([rows, np.sqrt(ridge) * np.eye(D + 1)]), np.concatenate([wanted, np.zeros(D + 1)])
    return np.linalg.lstsq(rows, wanted, rcond=None)[0]


@pytest.mark.parametrize(("ridge", "keep"), [(1.0, 1.0), (10.0, 0.9), (0.1, 0.5)])
def test_the_weights_are_the_least_squares_of_all_that_was_seen(ridge, keep):
    fit, steps = solved(ridge=ridge, keep=keep), [drawn(number) for number in range(3)]
    for states, wanted in steps:
        for half in (slice(0, 15), slice(15, None)):
            fit.add(with_one(states[half]), wanted[half])
        fit.finish()
    states, _ = drawn(9)
    expected = with_one(states).numpy() @ by_numpy(steps, ridge, keep)
    assert fit.predict(states).numpy() == pytest.approx(expected, abs=1e-6)


def test_what_was_seen_counts_from_the_end_of_the_step_on():
    fit, (states, wanted) = solved(), drawn(0)
    fit.add(with_one(states), wanted)
    assert not fit.predict(states).any(), "credit of a step must not know the step's own outcomes"
    fit.finish()
    assert fit.predict(states).any()


def test_nothing_seen_says_nothing():
    fit = solved()
    fit.finish()
    assert not fit.predict(drawn(0)[0]).any()


def test_no_gradient_reaches_the_policy():
    states = drawn(0)[0].requires_grad_()
    assert not solved().predict(states).requires_grad


def test_a_checkpoint_between_steps_keeps_the_bits():
    ours, theirs = solved(), solved()
    ours.add(with_one(drawn(0)[0]), drawn(0)[1])
    ours.finish()
    theirs.load_tensors(ours.tensors())
    for fit in (ours, theirs):
        fit.add(with_one(drawn(1)[0]), drawn(1)[1])
    states, _ = drawn(2)
    assert torch.equal(ours.predict(states), theirs.predict(states))
    for fit in (ours, theirs):
        fit.finish()
    assert torch.equal(ours.predict(states), theirs.predict(states))


def test_a_checkpoint_of_the_other_kind_is_refused():
    other = GradientFit("value", ValueHeadConfig(), D, LIKE)
    with pytest.raises(ValueError, match="value head of this kind"):
        solved().load_tensors(other.tensors())


@pytest.mark.parametrize(
    "options", [{"lr": 0.1}, {"hidden": 4}, {"into_policy": 0.5}, {"clip": 0.1}, {"lr": 0.1, "hidden": 4}]
)
def test_an_option_without_effect_is_refused(options):
    with pytest.raises(ValueError, match="no effect"):
        ValueHeadConfig(fit="least_squares", **options)


@pytest.mark.parametrize("options", [{"ridge": 1.0}, {"keep": 0.5}])
def test_an_option_of_least_squares_is_refused_for_gradients(options):
    with pytest.raises(ValueError, match="no effect"):
        ProgressHeadConfig(**options)


@pytest.mark.parametrize(("fit", "learns"), [("least_squares", True), ("gradient", False)])
def test_states_that_hardly_differ_from_their_mean_are_read(fit, learns):
    """As those of small policies: a constant ten times the spread. What a turn does stands in one direction of it."""
    head = ProgressHead(ProgressHeadConfig(fit=fit), D, LIKE)
    losses = []
    for step in range(12):
        rng = generator("turns", step)
        right_ET = rng.random((64, 8)) < 0.8
        states = 0.9 + 0.02 * rng.standard_normal((64, 8, D))
        states[..., 3] += 0.1 * right_ET
        outcome_E = right_ET.mean(1)
        for batch in np.split(np.arange(64), 4):
            rows = torch.from_numpy(states[batch].reshape(-1, D)).float()
            losses.append(head.learn(rows, np.repeat(batch, 8), outcome_E, 1.0))
        head.fit.finish()
    assert (np.mean(losses[-4:]) < 0.5 * 0.16 / 8) == learns


def test_both_kinds_are_made_by_name():
    assert isinstance(fit_of("value", ValueHeadConfig(), D, LIKE), GradientFit)
    assert isinstance(fit_of("value", ValueHeadConfig(fit="least_squares"), D, LIKE), LeastSquaresFit)
