"""Statistics of groups of turns, and the rules for groups that say nothing.

All in float64. With float32 and the usual eps of 1e-6 the rounding error of six equal rewards of 9.9 becomes an
advantage of 0.47; a group without spread is therefore recognised by max == min, and its members get exactly 0.
"""

from typing import ClassVar, Literal, NamedTuple

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK, TurnBatch
from manyturn.trainers.credit.stages import StageConfig

Singleton = Literal["zero", "raw"]
FlatStd = Literal["one", "zero"]
StatsOver = Literal["episodes", "rows", "first_rows"]
EPS = 1e-6


class GroupConfig(StageConfig):
    """Base of the configurations of methods that compare an episode with the others of its task."""

    compares_groups: ClassVar[bool] = True

    stats_over: StatsOver = "episodes"
    """What counts once in a group's statistics: an episode, by its return; a row, which is a turn, by its score, so
    that an episode counts as often as it is long; the first row of an episode, with its penalty, is for parity alone.
    """
    singleton: Singleton = "zero"
    """Advantage of a group of one: 0, or the raw score, which is what verl and verl-agent give."""


class GroupStatistics(NamedTuple):
    """Per turn, the statistics of its group: number of members, mean, sample standard deviation (ddof 1).

    All are 0 where no member is counted.
    """

    count_K: IntK
    mean_K: FloatK
    std_K: FloatK


def counted(batch: TurnBatch, stats_over: StatsOver) -> BoolK:
    """The turns (K) that enter the statistics: of scorable episodes every one, or the first one."""
    return batch.scorable_K if stats_over == "rows" else batch.scorable_K & (batch.turn_K == 0)


def score_statistics(batch: TurnBatch, group_K: IntK, stats_over: StatsOver) -> "GroupStatistics":
    """Statistics (K) of what the members of each group scored.

    Over episodes a penalty is in none of them: it is the affair of its own turn, and what the first turn was charged
    would raise or lower all others of its group.
    """
    value_K = batch.episode_return_E()[batch.episode_K] if stats_over == "episodes" else batch.score_K()
    return group_statistics(value_K, group_K, counted(batch, stats_over))


def group_statistics(value_K: FloatK, group_K: IntK, counted_K: BoolK) -> GroupStatistics:
    """Statistics over the counted members of each group, for every member.

    >>> count_K, mean_K, std_K = group_statistics(np.array([1.0, 3.0, 5.0]), np.array([7, 7, 8]), np.full(3, True))
    >>> count_K, mean_K, std_K.round(3)
    (array([2, 2, 1]), array([2., 2., 5.]), array([1.414, 1.414, 0.   ]))

    Args:
        value_K: a value per turn, NaN where unscorable.
        group_K: the group of each turn.
        counted_K: which turns enter the statistics; none with a NaN value.
    """
    _, id_K = np.unique(group_K, return_inverse=True)
    groups = int(id_K.max()) + 1
    ids, values = id_K[counted_K], value_K[counted_K]
    count = np.bincount(ids, minlength=groups)
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, ids, values)
    np.maximum.at(high, ids, values)
    flat = low == high
    mean = np.where(flat, low, np.bincount(ids, values, groups) / np.maximum(count, 1))
    square = np.bincount(ids, (values - mean[ids]) ** 2, groups)
    std = np.sqrt(square / np.maximum(count - 1, 1))
    return GroupStatistics(count[id_K], mean[id_K], std[id_K])


def deviation(value_K: FloatK, statistics: GroupStatistics, singleton: Singleton) -> FloatK:
    """value - mean of the group; a group of one by the singleton rule; 0 where the value is NaN.

    >>> value_K, group_K = np.array([1.0, 3.0, 5.0, np.nan]), np.array([7, 7, 8, 8])
    >>> deviation(value_K, group_statistics(value_K, group_K, ~np.isnan(value_K)), "zero")
    array([-1.,  1.,  0.,  0.])
    """
    alone_K = value_K if singleton == "raw" else np.zeros_like(value_K)
    deviation_K = np.where(statistics.count_K == 1, alone_K, value_K - statistics.mean_K)
    return np.where(np.isnan(value_K), 0.0, deviation_K)


def standardised(
    value_K: FloatK, statistics: GroupStatistics, singleton: Singleton, eps: float, flat_std: FlatStd = "one"
) -> FloatK:
    """(value - mean) / (std + eps), where a group without spread counts as one of std 1.

    The std of 1 matters with statistics over episodes: episodes of equal score, one of which has a penalty in a later
    turn, deviate by that penalty, which verl-agent then divides by eps: an advantage of -100,000. With ``flat_std``
    "zero" this is what it does; with an eps of 0 too, there is nothing to divide by, and the std is 1.

    >>> value_K, group_K = np.array([1.0, 3.0, 9.9, 9.9]), np.array([7, 7, 8, 8])
    >>> standardised(value_K, group_statistics(value_K, group_K, np.full(4, True)), "zero", eps=1e-6).round(3)
    array([-0.707,  0.707,  0.   ,  0.   ])
    """
    # A group of one has no std either; the authors' code gives it 1.
    std_K = np.where((flat_std == "zero") & (statistics.count_K > 1), statistics.std_K, 1.0)
    scale_K = np.where(statistics.std_K > 0, statistics.std_K, std_K) + eps
    return deviation(value_K, statistics, singleton) / np.where(scale_K > 0, scale_K, 1.0)
