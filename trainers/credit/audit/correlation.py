"""Correlation of credit with the true effect, overall and within episodes, with intervals clustered by task.

Turns of one task are alike, so it is tasks that are counted: the interval is the jackknife's over tasks, on Fisher's
scale atanh(r), with Student's quantile of N - 1 degrees of freedom (Efron & Tibshirani 1993, "An Introduction to the
Bootstrap", chapter 11). Two methods are compared by the same, pair by pair of left-out tasks.

Within episodes both sides are centred on their episode's mean first: a method that gives all turns of an episode one
number then correlates by 0.
"""

import math
from typing import NamedTuple

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK

ROUNDING = 1e-12  # share of the largest value below which a deviation is none
_NEARLY = 1 - 1e-12  # atanh(1) is infinite


class Estimate(NamedTuple):
    """A figure and its 95 % interval over tasks; NaN ends where fewer than two tasks say nothing of others."""

    mean: float
    low: float
    high: float


class Sums(NamedTuple):
    """Per task (N): turns, and the sums of x, y, x^2, y^2 and x y over them."""

    n: np.ndarray
    x: np.ndarray
    y: np.ndarray
    xx: np.ndarray
    yy: np.ndarray
    xy: np.ndarray

    def less(self) -> "Sums":
        """The sums over all tasks but one, for each (N)."""
        return Sums(*(side.sum() - side for side in self))

    def total(self) -> "Sums":
        return Sums(*(np.asarray(side.sum()) for side in self))


def sums_by_task(x_K: FloatK, y_K: FloatK, task_K: IntK) -> Sums:
    """Sums over the turns of each task, from which correlations of any part of the tasks follow."""
    N = int(task_K.max()) + 1
    sides = (np.ones_like(x_K), x_K, y_K, x_K * x_K, y_K * y_K, x_K * y_K)
    return Sums(*(np.bincount(task_K, side, N) for side in sides))


def correlation(sums: Sums) -> np.ndarray:
    """Pearson's r; 0 where a side does not vary.

    >>> x = np.array([0.0, 1.0, 2.0])
    >>> float(correlation(sums_by_task(x, 2 * x + 1, np.zeros(3, np.int64)).total()).round(6))
    1.0
    """
    n = np.maximum(sums.n, 1)
    spread_x = sums.xx - sums.x**2 / n
    spread_y = sums.yy - sums.y**2 / n
    flat = (spread_x <= 1e-12 * sums.xx) | (spread_y <= 1e-12 * sums.yy)
    scale = np.where(flat, 1.0, np.sqrt(np.abs(spread_x * spread_y)))
    return np.where(flat, 0.0, np.clip((sums.xy - sums.x * sums.y / n) / scale, -1, 1))


def centred(value_K: FloatK, episode_K: IntK) -> FloatK:
    """Each value less the mean of its episode (K).

    >>> centred(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]))
    array([-1.,  1.,  0.])
    """
    turns = np.bincount(episode_K)
    centred_K = value_K - (np.bincount(episode_K, value_K) / np.maximum(turns, 1))[episode_K]
    return np.where(np.abs(centred_K) > ROUNDING * np.abs(value_K).max(initial=0.0), centred_K, 0.0)


def correlation_interval(sums: Sums) -> Estimate:
    """Correlation with its interval."""
    r = float(correlation(sums.total()))
    low, high = jackknife(_scaled(r), _scaled(correlation(sums.less())))
    return Estimate(r, math.tanh(low), math.tanh(high))


def difference_interval(a: Sums, b: Sums) -> Estimate:
    """Difference of A's correlation from B's, over the same tasks."""
    full = float(correlation(a.total()) - correlation(b.total()))
    return Estimate(full, *jackknife(full, correlation(a.less()) - correlation(b.less())))


def jackknife(full: float, less_N: np.ndarray) -> tuple[float, float]:
    """Ends of the interval of a figure from its N values with one task left out each.

    >>> values = np.array([1.0, 2.0, 3.0, 6.0])
    >>> low, high = jackknife(3.0, (values.sum() - values) / 3)  # of a mean it is Student's interval
    >>> round(low, 3), round(high, 3)
    (-0.437, 6.437)
    """
    from manyturn.agents.evaluation.statistics import student_quantile  # credit itself needs no agents

    N = len(less_N)
    if N < 2:
        return math.nan, math.nan
    error = math.sqrt((N - 1) / N * float(((less_N - less_N.mean()) ** 2).sum()))
    reach = student_quantile(N - 1, 0.975) * error
    return full - reach, full + reach


def _scaled(r):
    return np.arctanh(np.clip(r, -_NEARLY, _NEARLY))
