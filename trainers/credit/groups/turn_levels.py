"""Turn rewards and outcomes, compared each with its like, then summed over the turns to come.

    A_k = T_k  +  gamma^(last-k) N(o)  -  penalty_k        T_k: sum over j >= k of gamma^(j-k) N(r_j)
    N(x) = (x - mean) / (std + eps), or x - mean without std;  over the scorable members of x's group, ddof 1

r_j is the sum of turn j's reward parts but the outcome, o the sum of the episode's outcome part. Normalised together,
one outcome of 1 among many small turn rewards would set the scale of all; in IGPO's paper it does, see ``igpo``. That
compares a turn's reward with those of all turns of the task, ``mt_grpo`` with those of the same number. A group of one
episode gives 0, though its turns differ: nothing says whether the episode was good. So does a group without spread;
without turn rewards and discount this is GRPO.
"""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from manyturn.envs.contract.options import OnlyWith, unknown
from manyturn.envs.contract.turn import OUTCOME
from manyturn.trainers.credit.batch.timeline import Timeline
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import (
    EPS,
    FlatStd,
    counted,
    deviation,
    group_statistics,
    standardised,
)
from manyturn.trainers.credit.stages import Advantage, StageConfig


class TurnLevelConfig(StageConfig):
    """Base of the configurations of methods that separate turn rewards from outcomes."""

    compares_groups: ClassVar[bool] = True

    outcome: str = OUTCOME
    """Name of the reward part that is the episode's outcome; all others are turn rewards."""
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per turn."""
    std: bool = True
    """Divide by the standard deviations."""
    eps: Annotated[float, OnlyWith("std")] = Field(default=EPS, ge=0)
    """Added to the standard deviations."""


def normalised(
    value_K: FloatK, group_K: IntK, counted_K: BoolK, config: TurnLevelConfig, flat_std: FlatStd = "one"
) -> FloatK:
    """N of the formula for each turn (K); 0 where the value is NaN.

    Args:
        counted_K: which turns enter the statistics.
        flat_std: as in ``standardised``; it matters where turns are compared that do not enter them.

    >>> class Centred(TurnLevelConfig):
    ...     std: bool = False
    >>> normalised(np.array([1.0, 3.0, 5.0]), np.array([7, 7, 8]), np.full(3, True), Centred(name="centred"))
    array([-1.,  1.,  0.])
    """
    statistics = group_statistics(value_K, group_K, counted_K)
    if config.std:
        return standardised(value_K, statistics, "zero", config.eps, flat_std)
    return deviation(value_K, statistics, "zero")


def turn_rewards(batch: TurnBatch, config: TurnLevelConfig) -> FloatK:
    """Sum (K) of each turn's reward parts but the outcome, NaN where unscorable; ValueError if there is no outcome."""
    if config.outcome not in batch.parts:
        raise ValueError(f"{config.name}: {unknown('reward part', config.outcome, batch.parts)}")
    return np.where(batch.scorable_K, batch.reward_K - batch.parts[config.outcome], np.nan)


def with_outcome(batch: TurnBatch, turn_K: FloatK, config: TurnLevelConfig) -> Advantage:
    """The formula from T (K), with the levels "turn" and "outcome" (K each)."""
    last_E = np.bincount(batch.episode_K) - 1
    outcome_E = np.bincount(batch.episode_K, batch.parts[config.outcome])
    outcome_K = np.where(batch.scorable_K, outcome_E[batch.episode_K], np.nan)
    discount_K = config.gamma ** (last_E[batch.episode_K] - batch.turn_K)
    compared_K = normalised(outcome_K, batch.group_K, counted(batch, "episodes"), config)
    levels = {"turn": turn_K, "outcome": compared_K * discount_K}
    return Advantage(levels["turn"] + levels["outcome"] - batch.penalty_K, levels)


def two_levels_to_go(batch: TurnBatch, like_K: IntK, config: TurnLevelConfig) -> Advantage:
    """The formula, with turn rewards compared among those turns that were played.

    Args:
        like_K: number of the group that each turn's reward is compared in.

    >>> parts = {"outcome": [[0, 1], [0, 0]], "gain": [[0.5, 0], [-0.5, 0]]}
    >>> batch = TurnBatch.from_episodes(parts, groups=[0, 0])
    >>> two_levels_to_go(batch, batch.group_K, TurnLevelConfig(name="any", std=False, gamma=0.5)).levels
    {'turn': array([ 0.5,  0. , -0.5,  0. ]), 'outcome': array([ 0.25,  0.5 , -0.25, -0.5 ])}
    """
    return with_outcome(batch, normalised_to_go(batch, turn_rewards(batch, config), like_K, config), config)


def normalised_to_go(batch: TurnBatch, reward_K: FloatK, like_K: IntK, config: TurnLevelConfig) -> FloatK:
    """Sum over j >= k of gamma^(j-k) N(r_j), from rewards (K) that are NaN where unscorable.

    >>> batch = TurnBatch.from_episodes([[0.5, 1.0], [-0.5, 0.0]], groups=[0, 0])
    >>> normalised_to_go(batch, batch.reward_K, batch.group_K, TurnLevelConfig(name="any", std=False))
    array([ 1.  ,  0.75, -1.  , -0.25])

    Args:
        like_K: number of the group that each turn's reward is compared in.
    """
    several_K = group_statistics(reward_K, batch.group_K, counted(batch, "episodes")).count_K > 1
    compared_K = np.where(several_K, normalised(reward_K, like_K, batch.scorable_K, config), 0.0)
    return Timeline.of(batch.episode_K, batch.turn_K).to_go(compared_K, config.gamma)
