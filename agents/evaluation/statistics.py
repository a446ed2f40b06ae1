"""Means over tasks with honest intervals, and the probability of success in k attempts.

Episodes of one task are alike, so it is tasks that are counted, not episodes: errors are clustered by task
(Miller 2024, "Adding Error Bars to Evals", arXiv 2411.00640). Nothing here corrects for comparing many policies.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyturn.envs.contract.random_keys import generator

Values = Mapping[str, Sequence[float]]
"""Task id -> the values of its episodes, at least one."""


class Interval(NamedTuple):
    """A mean over tasks and its interval.

    Attributes:
        mean: mean over tasks of their own means; NaN without tasks.
        low, high: ends of the interval; NaN where nothing can be said.
    """

    mean: float
    low: float
    high: float
    n_tasks: int
    n_episodes: int


def mean_interval(values_by_task: Values, level: float = 0.95, *, proportion: bool = False) -> Interval:
    """The mean over tasks, with an interval for other tasks of the same kind.

    In general it is Student's interval with N-1 degrees of freedom over the N task means. It is too narrow for
    success rates near 0 or 1, where it also leaves [0, 1], so proportions get Wilson's interval with the number of
    independent trials that would give the same standard error (Franco, Little, Louis & Slud 2019, "Comparative Study
    of Confidence Intervals for Proportions in Complex Sample Surveys"). Where all task means are 0 or 1, as with one
    episode a task, or do not differ at all, this is Wilson's interval on N tasks.

    One task says nothing about others: low and high are NaN. Values other than proportions that do not differ
    between tasks give an interval of no width.

    >>> mean_interval({"a": [1, 1], "b": [1, 0], "c": [0, 0], "d": [1, 0]}, proportion=True).mean
    0.5
    >>> mean, low, high, *_ = mean_interval({f"task {i}": [1] for i in range(20)}, proportion=True)
    >>> mean, round(low, 2), high
    (1.0, 0.84, 1.0)

    Args:
        values_by_task: N tasks with the values of their episodes.
        level: how often the interval holds the true mean.
        proportion: the values are successes, 0 to 1.
    """
    means_N, n_episodes = _task_means(values_by_task)
    if proportion and len(means_N) and (means_N.min() < 0 or means_N.max() > 1):
        raise ValueError("a proportion is between 0 and 1")
    if len(means_N) < 2:
        mean = float(means_N[0]) if len(means_N) else math.nan
        return Interval(mean, math.nan, math.nan, len(means_N), n_episodes)
    low, high = map(float, interval_ends(means_N, level, proportion=proportion))
    return Interval(float(means_N.mean()), low, high, len(means_N), n_episodes)


def is_share(*values_by_task: Values) -> bool:
    """True if values are all 0 or 1, and both occur, so that their mean is a share as success is.

    Of a pair, both sides are looked at together. Values that are all alike may be of any scale: a part that nobody has
    earned yet says nothing of its largest value.

    >>> is_share({"a": [0.0, 1.0], "b": [0.0]}), is_share({"a": [0.0]}), is_share({"a": [0.0, 1.0, -1.0]})
    (True, False, False)
    >>> is_share({"a": [0.0]}, {"a": [1.0]})
    True
    """
    return {value for side in values_by_task for values in side.values() for value in values} == {0, 1}


def interval_ends(
    means_N: NDArray[np.float64], level: float = 0.95, *, proportion: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both ends of the interval of ``mean_interval``, from N > 1 task means; any axes may precede N."""
    return _wilson(means_N, level) if proportion else _student(means_N, level)


def paired_difference(
    a_by_task: Values, b_by_task: Values, level: float = 0.95, *, proportion: bool = False
) -> Interval:
    """Mean difference of A and B on the same N tasks, with Student's interval.

    Pairing removes what makes tasks easy or hard for both (Miller 2024). Two tasks at least are needed for
    an interval. Differences that are all alike, d, give one of no width, however few they are; but if the values are
    successes, at most a share u = z^2 / (N + z^2) of tasks is otherwise, by Wilson's limit for 0 of N, and their
    differences are between -1 and 1: the interval is d - u (1 + d) to d + u (1 - d). An interval of successes is cut at
    -1 and 1, beyond which no difference is.

    >>> paired_difference({"a": [1], "b": [1], "c": [0]}, {"a": [0], "b": [1], "c": [0]}).mean
    0.3333333333333333

    Raises:
        ValueError: the tasks differ.
    """
    differences_N = _differences(a_by_task, b_by_task)
    n_episodes = sum(map(len, a_by_task.values())) + sum(map(len, b_by_task.values()))
    mean = float(differences_N.mean()) if len(differences_N) else math.nan
    low, high = map(float, _student(differences_N, level)) if len(differences_N) > 1 else (math.nan, math.nan)
    if proportion and low == high:
        z_squared = normal_quantile((1 + level) / 2) ** 2
        others = z_squared / (len(differences_N) + z_squared)
        low, high = mean - others * (1 + mean), mean + others * (1 - mean)
    if proportion and low < high:  # not NaN
        low, high = max(low, -1.0), min(high, 1.0)
    return Interval(mean, low, high, len(differences_N), n_episodes)


def detectable_difference(a_by_task: Values, b_by_task: Values, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest true difference that these tasks would probably have shown: (z + z_power) SE, 2.8 SE by default.

    SE is the standard error of the N paired differences (Miller 2024, section 5). NaN where no spread was seen.
    """
    differences_N = _differences(a_by_task, b_by_task)
    spread = float(differences_N.std(ddof=1)) if len(differences_N) > 1 else 0.0
    if spread < 1e-12:
        return math.nan
    return (normal_quantile((1 + level) / 2) + normal_quantile(power)) * spread / math.sqrt(len(differences_N))


def sign_flip_p(a_by_task: Values, b_by_task: Values, draws: int = 10_000) -> float:
    """Two-sided p-value of "A and B are alike": how often differences as large come of exchanging A and B at random.

    Exact up to 12 tasks, else from ``draws`` random exchanges that depend only on the task ids.

    >>> sign_flip_p({"a": [1], "b": [1], "c": [1]}, {"a": [0], "b": [0], "c": [0]})
    0.25
    """
    return float(flip_p(_differences(a_by_task, b_by_task), sorted(a_by_task), draws))


def flip_p(differences_N: NDArray[np.float64], tasks: Sequence[str], draws: int = 10_000) -> NDArray[np.float64]:
    """``sign_flip_p`` of N differences, whose tasks decide what is drawn; any axes may precede N."""
    N = differences_N.shape[-1]
    if not N:
        return np.full(differences_N.shape[:-1], np.nan)
    if N <= 12:
        signs = 1 - 2 * (np.arange(2**N)[:, None] >> np.arange(N) & 1)
    else:
        signs = 1 - 2 * generator("sign flip", list(tasks)).integers(0, 2, (draws, N), dtype=np.int8)
    # Sums that are equal but for rounding count as equal.
    bound = np.abs(differences_N.sum(-1)) - 1e-9
    reached = (np.abs(differences_N @ signs.T.astype(np.float64)) >= bound[..., None]).sum(-1)
    return reached / 2**N if N <= 12 else (reached + 1) / (draws + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number: the i-th smallest of m becomes the largest (m - j + 1) p_(j) over j <= i.

    Among comparisons of which those below alpha are called different, one is wrong with at most probability alpha,
    for any dependence (Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure"). NaN is no
    comparison: it stays NaN and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted((i for i, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i])
    adjusted, largest = [math.nan] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = adjusted[i] = max(largest, min(1.0, (len(order) - rank) * p_values[i]))
    return adjusted


def pass_at_k(success_by_task: Mapping[str, Sequence[bool]], k: int) -> float | None:
    """The probability that at least one of k attempts succeeds, averaged over tasks: 1 - C(n-c, k) / C(n, k).

    Unbiased for n attempts of which c succeeded (Chen et al. 2021, arXiv 2107.03374, equation 1). Tasks with fewer
    than k attempts are left out; None if that leaves none.

    >>> pass_at_k({"a": [True, False, False, False]}, 2)
    0.5
    """
    return _mean_over_attempts(success_by_task, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_hat_k(success_by_task: Mapping[str, Sequence[bool]], k: int) -> float | None:
    """The probability that all of k attempts succeed, averaged over tasks: C(c, k) / C(n, k).

    Unbiased (Yao et al. 2024, tau-bench, arXiv 2406.12045). Tasks with fewer than k attempts are left out;
    None if that leaves none.

    >>> pass_hat_k({"a": [True, True, True, False]}, 2)
    0.5
    """
    return _mean_over_attempts(success_by_task, k, lambda n, c: math.comb(c, k) / math.comb(n, k))


def _mean_over_attempts(
    success_by_task: Mapping[str, Sequence[bool]], k: int, share: Callable[[int, int], float]
) -> float | None:
    if k < 1:
        raise ValueError(f"k counts attempts, so it is at least 1, not {k}")
    shares = [share(len(tries), sum(map(bool, tries))) for tries in success_by_task.values() if len(tries) >= k]
    return math.fsum(shares) / len(shares) if shares else None


def _task_means(values_by_task: Values) -> tuple[NDArray[np.float64], int]:
    """N task means and the number of episodes; raises ValueError for a task without a number."""
    for task, values in values_by_task.items():
        if not len(values) or not all(map(math.isfinite, values)):
            raise ValueError(f"task {task!r} has no values or one that is no number: leave out errors first")
    means_N = np.array([math.fsum(values) / len(values) for values in values_by_task.values()], np.float64)
    return means_N, sum(map(len, values_by_task.values()))


def _differences(a_by_task: Values, b_by_task: Values) -> NDArray[np.float64]:
    """N differences of task means, A minus B, in the order of the ids."""
    odd = sorted(a_by_task.keys() ^ b_by_task.keys())
    if odd:
        has, lacks = ("A", "B") if odd[0] in a_by_task else ("B", "A")
        raise ValueError(
            f"{len(odd)} tasks are in one of A and B only, such as {odd[0]!r}, which {has} has and {lacks} lacks: "
            "compare over the tasks that both have"
        )
    a_means, b_means = (
        _task_means({task: values[task] for task in sorted(values)})[0] for values in (a_by_task, b_by_task)
    )
    return a_means - b_means


def _student(values_N: NDArray[np.float64], level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    N, mean = values_N.shape[-1], values_N.mean(-1)
    reach = student_quantile(N - 1, (1 + level) / 2) * values_N.std(-1, ddof=1) / math.sqrt(N)
    return mean - reach, mean + reach


def _wilson(means_N: NDArray[np.float64], level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval for the mean of task means in [0, 1]."""
    N, p, spread = means_N.shape[-1], means_N.mean(-1), means_N.std(-1, ddof=1)
    plain = (spread < 1e-12) | ((means_N == 0) | (means_N == 1)).all(-1)
    trials = np.where(plain, N, p * (1 - p) * N / np.where(plain, 1.0, spread) ** 2)
    z, t = normal_quantile((1 + level) / 2), student_quantile(N - 1, (1 + level) / 2)
    return wilson_ends(p, trials, np.where(plain, z, t))


def wilson_ends(p: ArrayLike, trials: ArrayLike, z: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval: all p' from which p is at most z standard errors away, (p - p')^2 <= z^2 p' (1 - p') / trials.

    Args:
        p: proportions that were seen; arrays of one shape, or numbers, as the others.
        trials: independent trials that p has the precision of.
        z: quantile of the normal distribution, or of Student's where the precision was estimated.
    """
    p, trials, z = (np.asarray(value, np.float64) for value in (p, trials, z))
    centre = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    reach = z / (1 + z * z / trials) * np.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    low, high = np.maximum(0.0, centre - reach), np.minimum(1.0, centre + reach)
    return np.where(p == 0, 0.0, low), np.where(p == 1, 1.0, high)


def normal_quantile(p: float) -> float:
    """Quantile of the standard normal distribution.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    return NormalDist().inv_cdf(p)


@cache
def student_quantile(freedom: int, p: float) -> float:
    """Quantile of Student's distribution; NaN for no degree of freedom.

    With t = sqrt(freedom) tan(a) its distribution function is a finite sum (Abramowitz & Stegun 1964, 26.7.3 and
    26.7.4), which rises with the angle a; bisection solves for a.

    >>> [round(student_quantile(freedom, 0.975), 3) for freedom in (1, 2, 30)]
    [12.706, 4.303, 2.042]
    """
    if freedom < 1:
        return math.nan
    if p < 0.5:
        return -student_quantile(freedom, 1 - p)
    odd, terms = freedom % 2, (freedom + 1) // 2 - 1 + (freedom + 1) % 2
    powers = np.arange(terms)
    factors = (2 * powers[1:] + odd - 1) / (2 * powers[1:] + odd)
    weights = np.cumprod(np.concatenate(([1.0], factors)))[:terms]

    def inside(angle: float) -> float:
        total = math.sin(angle) * float((weights * math.cos(angle) ** (2 * powers + odd)).sum())
        return 2 / math.pi * (angle + total) if odd else total

    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if inside(middle) < 2 * p - 1 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)
