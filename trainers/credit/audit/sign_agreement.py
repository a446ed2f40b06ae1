"""Scores on turns whose effect is certain: does credit have its sign, and does it leave alone turns without effect?"""

import numpy as np

from manyturn.trainers.credit.audit.correlation import Estimate, jackknife
from manyturn.trainers.credit.audit.effects import Effects
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK

SMALL = 0.25  # share of the effects' root mean square below which an effect is none


def mean_over_turns(value_K: FloatK, counted_K: BoolK, task_K: IntK) -> Estimate:
    """Mean of a value over the counted turns, with its interval over the tasks that have some.

    >>> mean = mean_over_turns(np.array([1.0, 0.0, 1.0]), np.array([True, True, True]), np.array([0, 0, 1])).mean
    >>> round(float(mean), 3)
    0.667
    """
    N = int(task_K.max()) + 1
    count_N = np.bincount(task_K[counted_K], minlength=N)
    sum_N = np.bincount(task_K[counted_K], value_K[counted_K], N)[count_N > 0]
    count_N = count_N[count_N > 0]
    if not len(count_N):
        return Estimate(np.nan, np.nan, np.nan)
    mean = sum_N.sum() / count_N.sum()
    if len(count_N) < 2:
        return Estimate(mean, np.nan, np.nan)
    less_N = (sum_N.sum() - sum_N) / (count_N.sum() - count_N)
    return Estimate(mean, *jackknife(mean, less_N))


def sign_agreement(credit_K: FloatK, effects: Effects, task_K: IntK) -> Estimate:
    """Share of the turns of certain effect whose credit has its sign; a credit of 0 counts as half.

    A credit that is drawn at random has 0.5. The interval is cut off at 0 and 1.

    >>> effects = Effects(np.array([1.0, 1.0, 1.0, -1.0]), np.zeros(4), np.zeros(4), np.zeros(4))
    >>> sign_agreement(np.array([1.0, 1.0, 1.0, 1.0]), effects, np.array([0, 0, 1, 1])).high
    1.0
    """
    agrees_K = 0.5 + 0.5 * np.sign(credit_K) * np.sign(effects.effect_K)
    mean, low, high = mean_over_turns(agrees_K, effects.certain_K(), task_K)
    return Estimate(mean, float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1)))


def idle_K(effects: Effects) -> BoolK:
    """Turns (K) that do not matter, for certain: even two standard errors more would be a small effect."""
    small = SMALL * float(np.sqrt(np.mean(effects.effect_K**2)))
    return np.abs(effects.effect_K) + 2 * effects.error_K <= max(small, 1e-12)


def idle_credit(credit_K: FloatK, effects: Effects) -> float:
    """Mean size of the credit of turns that do not matter, over that of turns that do; NaN where a kind is missing.

    0 is right; a method that gives all turns of an episode one number has about 1.
    """
    idle, certain = idle_K(effects), effects.certain_K()
    size_K = np.abs(credit_K)
    if not idle.any() or not certain.any() or not size_K[certain].any():
        return float("nan")
    return float(size_K[idle].mean() / size_K[certain].mean())


def carrying_share(effects: Effects, share: float = 0.9) -> float:
    """Smallest share of turns that carries so much of the sum of squared effects, less what is noise of each.

    >>> sure = Effects(np.array([3.0, 0.0, 0.0, 0.1]), np.zeros(4), np.zeros(4), np.zeros(4))
    >>> carrying_share(sure)
    0.25
    """
    squares_K = np.sort(np.maximum(effects.effect_K**2 - effects.error_K**2, 0))[::-1]
    if not squares_K.sum():
        return float("nan")
    reached_K = np.cumsum(squares_K) >= share * squares_K.sum() - 1e-12
    return float((reached_K.argmax() + 1) / len(squares_K))
