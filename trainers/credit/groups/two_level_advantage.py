"""Two levels of comparison, added up: episodes of a task, and turns of a task in the same situation.

    A_k = A^E_k + w A^S_k
    A^E_k = norm of the score s_k over the episodes of the task
    A^S_k = norm of what the turn is judged by, x_k, over the turns in k's situation
    norm(x) = x - mean (``mean_norm``) or (x - mean) / (std + eps) (``mean_std_norm``), ddof 1

Methods differ in x: GiGPO takes the turn's return, GraphGPO the distance that is left to the goal.
"""

from typing import Annotated, Literal

from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import (
    EPS,
    FlatStd,
    GroupConfig,
    GroupStatistics,
    Singleton,
    deviation,
    group_statistics,
    score_statistics,
    standardised,
)
from manyturn.trainers.credit.groups.situations import Situation, SituationConfig
from manyturn.trainers.credit.stages import Advantage


class TwoLevelConfig(SituationConfig, GroupConfig):
    """Base of the configurations of methods with both levels."""

    mode: Literal["mean_norm", "mean_std_norm"] = "mean_norm"
    """Whether both levels are divided by their standard deviation."""
    turn_weight: float = Field(default=1.0, ge=0)
    """Weight w of the turn level."""
    situation: Annotated[Situation, OnlyWith("turn_weight")] = "anchor"
    """What two turns in the same situation share: their anchor, or with it the number of the turn (clock), or the
    anchors of the turns before (history)."""
    similarity: Annotated[float | None, OnlyWith("turn_weight")] = Field(default=None, gt=0, lt=1)
    """difflib ratio of their texts from which two situations are the same; None: equal anchors only."""
    eps: Annotated[float, OnlyWith("mode", "mean_std_norm")] = Field(default=EPS, ge=0)
    """Added to the standard deviations."""
    flat_std: Annotated[FlatStd, OnlyWith("mode", "mean_std_norm")] = "one"
    """Standard deviation of a group without spread. With one, its members get exactly 0. With zero, which is for parity
    with the authors' code, what deviates by a penalty alone is divided by eps: advantages of a hundred thousand."""

    @property
    def compares_returns_only(self) -> bool:  # type: ignore[override]
        return self.turn_weight == 0


def two_levels(
    batch: TurnBatch, score_K: FloatK, judged_K: FloatK, situation_K: IntK, config: TwoLevelConfig
) -> Advantage:
    """Both levels from scores, what turns are judged by, and situations (K each), NaN where unscorable."""
    episode_K = episode_level(batch, score_K, config)
    turn_K = norm(judged_K, situation_K, batch.scorable_K, config)
    return Advantage(episode_K + config.turn_weight * turn_K, {"episode": episode_K, "turn": turn_K})


def episode_level(batch: TurnBatch, score_K: FloatK, config: TwoLevelConfig) -> FloatK:
    """Norm (K) of the scores over the episodes of the task."""
    return _norm(score_K, score_statistics(batch, batch.group_K, config.stats_over), config.singleton, config)


def norm(value_K: FloatK, group_K: IntK, counted_K: BoolK, config: TwoLevelConfig) -> FloatK:
    """Norm (K) of values over the counted turns of each group; a turn that is alone in its group gets 0.

    >>> import numpy as np
    >>> norm(np.array([3.0, 1.0, 5.0]), np.array([0, 0, 1]), np.full(3, True), TwoLevelConfig(name="any"))
    array([ 1., -1.,  0.])
    """
    return _norm(value_K, group_statistics(value_K, group_K, counted_K), "zero", config)


def _norm(value_K: FloatK, statistics: GroupStatistics, singleton: Singleton, config: TwoLevelConfig) -> FloatK:
    if config.mode == "mean_std_norm":
        return standardised(value_K, statistics, singleton, config.eps, config.flat_std)
    return deviation(value_K, statistics, singleton)
