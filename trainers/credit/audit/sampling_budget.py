"""Budget of an audit: continuations go to the situations whose value is uncertain, and to those that many turns need.

The mean squared error of the effects of a task's K turns is about sum_s w_s v_s / (n_s K) over its C starts, where w_s
counts the turns that start s comes before or after, v_s is the variance of its returns, and n_s the number of its
continuations. Of all ways to bring it down to ``error``^2 the cheapest is (Neyman's allocation with costs)

    n_s = sqrt(w_s v_s / c_s) * sum_j sqrt(w_j v_j c_j) / (error^2 K)

with c_s the mean number of steps of a continuation. Source: Neyman 1934, "On the Two Different Aspects of the
Representative Method"; with costs, Cochran, "Sampling Techniques", section 5.5.
"""

from typing import NamedTuple

import numpy as np

from manyturn.trainers.credit.audit.effects import END, Effects, reliability
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK

GROWTH = 6  # a start gets at most so many times its continuations in one pass: its variance is a guess yet


class Starts(NamedTuple):
    """The C starts of a task's continuations as far as they are known.

    Attributes:
        variance_C: of the returns, as ``moments`` gives it.
        count_C: continuations so far.
        cost_C: mean steps of one, at least 1.
        uses_C: turns that a start comes before or after.
    """

    variance_C: FloatK
    count_C: FloatK
    cost_C: FloatK
    uses_C: FloatK


def uses(before_K: IntK, after_K: IntK, starts: int) -> FloatK:
    """Number of turns that each of the starts comes before or after.

    >>> uses(np.array([0, 1]), np.array([1, END]), 2)
    array([1., 2.])
    """
    there_K = after_K[after_K != END]
    return np.bincount(before_K, minlength=starts) + np.bincount(there_K, minlength=starts).astype(np.float64)


def further(starts: Starts, turns: int, error: float, most: int) -> IntK:
    """Further continuations that each of the C starts needs for a root mean square error of the effects.

    >>> even = Starts(np.full(2, 0.25), np.full(2, 16.0), np.full(2, 4.0), np.array([1.0, 2.0]))
    >>> further(even, turns=2, error=0.1, most=500)
    array([15, 27])

    Args:
        turns: K, of the task.
        error: the root mean square error that is aimed at.
        most: continuations of one start at most.
    """
    variance_C, count_C, cost_C, uses_C = starts
    total = float(np.sqrt(uses_C * variance_C * cost_C).sum())
    needed_C = np.ceil(np.sqrt(uses_C * variance_C / cost_C) * total / (error**2 * turns))
    limit_C = np.minimum(most, GROWTH * count_C)
    return np.maximum(0, np.minimum(needed_C, limit_C) - count_C).astype(np.int64)


def error_for(effects: Effects, goal: float) -> float | None:
    """The root mean square error of the effects at which their reliability is the goal; None if it is reached.

    Where the effects found so far are all noise, half of the present error.
    """
    if reliability(effects) >= goal:
        return None
    noise = float(np.mean(effects.error_K**2))
    true = float(effects.effect_K.var()) - noise
    target = (1 - goal) * true if true > 0 else 0.0
    return float(np.sqrt(max(0.9 * target, noise / 36)))
