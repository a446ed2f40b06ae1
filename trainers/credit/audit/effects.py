"""True effects of turns, estimated from continuations, with their standard errors.

    effect_k = Q(s_k, a_k) - V(s_k) = r_k + V(s_(k+1)) - V(s_k)

V of a situation is the mean return of continuations from it under the policy that played the episode. Where chance
decides what comes after an action, Q has continuations of its own, which begin with that action.

Continuation m of every situation of a task draws the same random numbers (common random numbers), so that the errors of
both means are correlated and their difference is less noisy:

    var(effect_k) = v_a / n_a + v_b / n_b - 2 c min(n_a, n_b) / (n_a n_b)

with variances v and numbers n of the continuations after and before the turn, and their covariance c over the pairs of
equal m. Few continuations that all end alike do not show that a situation is certain. So every variance is taken as if
two further ones had been seen, half the range of all returns above the mean and below it (Agresti & Coull 1998 add two
successes and two failures for the interval of a proportion).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK

ADDED = 2  # continuations that are added to each variance
END = -1  # in place of a start's number: the episode is over, and worth 0


@dataclass(frozen=True, eq=False)
class Effects:
    """True effects of K turns.

    Attributes:
        effect_K: Q(s, a) - V(s), in units of the return.
        error_K: standard error of each effect.
        value_K: V(s) before the turn.
        value_error_K: standard error of each value.
    """

    effect_K: FloatK
    error_K: FloatK
    value_K: FloatK
    value_error_K: FloatK

    def certain_K(self, errors: float = 3.0) -> BoolK:
        """Turns (K) whose effect is more than so many standard errors away from 0."""
        return np.abs(self.effect_K) > errors * self.error_K


def effects_of_task(
    returns: Sequence[np.ndarray], before_K: IntK, after_K: IntK, reward_K: FloatK, reach: float
) -> Effects:
    """The effects of the K turns of one task.

    >>> sure, even = np.ones(4), np.array([1.0, 0.0, 1.0, 0.0])
    >>> effects = effects_of_task([even, sure], np.array([0, 1]), np.array([1, END]), np.array([0.0, 1.0]), reach=0.5)
    >>> effects.effect_K, effects.error_K.round(3)
    (array([0.5, 0. ]), array([0.274, 0.158]))

    Args:
        returns: for each start of continuations their returns from there on; at least two each.
        before_K: number of the start before each turn.
        after_K: number of the start after it; ``END`` where the episode is over.
        reward_K: reward of the turn itself; 0 where the returns after it include it.
        reach: half the range of all returns, of other tasks too.
    """
    mean_C, spread_C, count_C = moments(returns, reach)
    after = [returns[a] if a != END else np.zeros(0) for a in after_K]
    unit_K, pairs_K = np.zeros(len(before_K)), np.zeros(len(before_K))
    for k, (b, later) in enumerate(zip(before_K, after, strict=True)):
        unit_K[k], pairs_K[k] = _unit_variance(returns[b], later)
    variance_K = _with_added(unit_K, pairs_K, reach)
    value_after_K = np.where(after_K == END, 0.0, mean_C[after_K])
    return Effects(
        effect_K=reward_K + value_after_K - mean_C[before_K],
        error_K=np.sqrt(variance_K / pairs_K),
        value_K=mean_C[before_K],
        value_error_K=np.sqrt(spread_C / count_C)[before_K],
    )


def moments(returns: Sequence[np.ndarray], reach: float) -> tuple[FloatK, FloatK, FloatK]:
    """Mean, variance with what is added, and number of the continuations of each of C starts."""
    count_C = np.array([len(one) for one in returns], np.float64)
    mean_C = np.array([one.mean() for one in returns])
    plain_C = np.array([one.var(ddof=1) for one in returns])
    return mean_C, _with_added(plain_C, count_C, reach), count_C


def _with_added(variance: FloatK, count: FloatK, reach: float) -> FloatK:
    return ((count - 1) * variance + ADDED * reach**2) / (count - 1 + ADDED)


def half_range(returns: Iterable[np.ndarray]) -> float:
    """Half the distance between the least and the most that any continuation brought.

    >>> half_range([np.array([0.0, 1.0]), np.array([0.5])])
    0.5
    """
    ends = [(one.min(), one.max()) for one in returns if len(one)]
    return float(max(high for _, high in ends) - min(low for low, _ in ends)) / 2 if ends else 0.0


def _unit_variance(before: np.ndarray, after: np.ndarray) -> tuple[float, int]:
    """Variance of the difference of two means times the number of pairs, and that number; no ``after`` is 0."""
    n = len(before)
    if not len(after):
        return float(before.var(ddof=1)), n
    pairs = min(n, len(after))
    shared = float(np.cov(before[:pairs], after[:pairs])[0, 1])
    both = before.var(ddof=1) / n + after.var(ddof=1) / len(after)
    return max(0.0, float(both - 2 * shared * pairs / (n * len(after)))) * pairs, pairs


def joined(parts: Sequence[Effects]) -> Effects:
    """The effects of several tasks in a row."""
    names = ("effect_K", "error_K", "value_K", "value_error_K")
    return Effects(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def reliability(effects: Effects) -> float:
    """Share of the variance of the estimated effects that is true: 1 - mean squared error / variance; 0 at least.

    A credit that equals the true effect correlates with the estimate by the root of it.
    """
    spread = float(effects.effect_K.var())
    return max(0.0, 1 - float(np.mean(effects.error_K**2)) / spread) if spread > 0 else 0.0
