"""Spread over training runs that differ only in their seed, and an interval for the next run.

The interquartile mean is that of Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (arXiv 2108.13264, rliable), with two differences. There a score is one training run on one game, so runs are
resampled for each game apart and the mean is trimmed over all scores. Here one run has a result on every task, most of
them near 0 or 1: runs are resampled intact, since what a seed did to one task it did to all, and it is runs whose mean
success is trimmed, since trimming single tasks would turn 80 % of tasks solved into 100 %. And where rliable takes
percentiles, which hold the truth much too seldom for 3 to 5 runs, the bootstrap gives the standard error only.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyturn.agents.evaluation.statistics import Values, normal_quantile, student_quantile, wilson_ends
from manyturn.envs.contract.random_keys import generator

FEWEST_RUNS = 3


class Spread(NamedTuple):
    """Success over training runs.

    Attributes:
        iqm: interquartile mean over R runs of their success; the plain mean for three.
        low, high: ends of its interval, for other seeds and other tasks of the same kinds; NaN below three runs.
        lowest, highest: of the runs' success.
    """

    iqm: float
    low: float
    high: float
    lowest: float
    highest: float
    n_runs: int
    n_tasks: int
    n_episodes: int


def spread(
    runs: Sequence[Values], strata: Mapping[str, str] | None = None, level: float = 0.95, draws: int = 2_000
) -> Spread:
    """Success of R training runs on the same N tasks.

    Args:
        runs: for each run the successes, 0 to 1, of each task; in any order, which has no effect.
        strata: task -> its kind, such as the difficulty: tasks are resampled within their kind. None: all are of one.
        level: how often the interval holds the truth.
        draws: bootstrap samples; they depend only on the task ids and the number of runs.

    Raises:
        ValueError: there is no run or no task, or the tasks differ between runs.
    """
    if not runs or not runs[0]:
        raise ValueError("there is no run, or no task that all runs have results on")
    tasks = sorted(runs[0])
    if any(run.keys() != runs[0].keys() for run in runs):
        raise ValueError("the runs have results on different tasks: compare over the tasks that all have")
    scores_RN = np.array([[math.fsum(run[task]) / len(run[task]) for task in tasks] for run in runs], np.float64)
    if not np.isfinite(scores_RN).all() or scores_RN.min() < 0 or scores_RN.max() > 1:
        raise ValueError("a success is between 0 and 1")
    scores_RN = scores_RN[np.lexsort(scores_RN.T[::-1])]
    means_R = scores_RN.mean(1)
    iqm, low, high = float(_middle(means_R)), math.nan, math.nan
    if len(runs) >= FEWEST_RUNS and len(tasks) > 1:
        low, high = map(float, spread_ends(scores_RN, tasks, [(strata or {}).get(t, "") for t in tasks], level, draws))
    n_episodes = sum(len(values) for run in runs for values in run.values())
    return Spread(iqm, low, high, float(means_R.min()), float(means_R.max()), len(runs), len(tasks), n_episodes)


def spread_ends(
    scores_RN: NDArray[np.float64], tasks: Sequence[str], strata: Sequence[str], level: float = 0.95, draws: int = 2_000
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both ends of the interval of ``spread``; any axes may precede R > 1 and N > 1.

    Runs and tasks are two crossed samples. Resampling one of them while the other stays gives V_runs and V_tasks, the
    variances of the interquartile mean, each enlarged by n / (n - 1) for its size (tasks: N / (N - strata)). Both
    contain the part that belongs to a run on a task alone, which is taken off once (two-way random effects; a
    bootstrap of both together counts it twice as well, Owen 2007, arXiv 0712.1111). With quantiles t of Student's:

        reach^2 = t_{R-1}^2 max(0, V_runs - MS / (R N)) + t_{N-1}^2 V_tasks
        MS      = sum of squared residuals / ((R - 1) (N - 1))

    A quantile for each part (Banerjee 1961, Sankhya A 23) keeps the promise with few runs, where Satterthwaite's
    degrees of freedom fall short. The ends are Wilson's with reach = z standard errors of p; where nothing differs,
    they are Wilson's on N tasks.
    """
    R, N = scores_RN.shape[-2:]
    V_runs, V_tasks = _bootstrap_variances(scores_RN, tasks, strata, draws)
    means_R, means_N = scores_RN.mean(-1), scores_RN.mean(-2)
    p = means_R.mean(-1)
    residuals_RN = scores_RN - means_R[..., :, None] - means_N[..., None, :] + p[..., None, None]
    once = (residuals_RN**2).sum((-2, -1)) / ((R - 1) * (N - 1)) / (R * N)
    t_R, t_N = (student_quantile(count - 1, (1 + level) / 2) for count in (R, N))
    reach_squared = t_R**2 * np.maximum(0.0, V_runs - once) + t_N**2 * V_tasks
    alike = reach_squared < 1e-24
    trials = np.where(alike, N, np.maximum(p * (1 - p), 1e-24) / np.where(alike, 1.0, reach_squared))
    return wilson_ends(_middle(means_R), trials, np.where(alike, normal_quantile((1 + level) / 2), 1.0))


def _middle(values: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """The interquartile mean along an axis."""
    count = values.shape[axis]
    cut = count // 4
    parted = np.partition(values, (cut, count - cut - 1), axis)
    return np.moveaxis(parted, axis, 0)[cut : count - cut].mean(0)


def _bootstrap_variances(
    scores_RN: NDArray[np.float64], tasks: Sequence[str], strata: Sequence[str], draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Variance of the interquartile mean when runs are resampled, and when tasks are."""
    R, N = scores_RN.shape[-2:]
    rng = generator("spread", R, list(tasks))
    chosen_JR = rng.integers(0, R, (draws, R))
    V_runs = _middle(scores_RN.mean(-1)[..., chosen_JR]).var(-1) * R / (R - 1)

    kinds = sorted(set(strata))
    # With a task of its own for each kind nothing could be resampled.
    kind_N = np.array([kinds.index(kind) for kind in strata]) if 2 * len(kinds) <= N else np.zeros(N, int)
    counts_NJ = np.zeros((N, draws))
    for kind in np.unique(kind_N):
        members = np.flatnonzero(kind_N == kind)
        shares = np.full(len(members), 1 / len(members))
        counts_NJ[members] = rng.multinomial(len(members), shares, draws).T
    resampled_RJ = (scores_RN.reshape(-1, N) @ counts_NJ / N).reshape(*scores_RN.shape[:-1], draws)
    V_tasks = _middle(resampled_RJ, axis=-2).var(-1) * N / (N - len(np.unique(kind_N)))
    return V_runs, V_tasks
