"""Turn rewards and outcomes, compared each with its like, then summed over the turns to come.

    A_k = T_k  +  gamma^(last-k) N(o)  -  penalty_k        T_k: sum over j >= k of gamma^(j-k) N(r_j)
    N(x) = (x - mean) / (std + eps), or x - mean without std;  over the scorable members of x's group, ddof 1

r_j is the sum of turn j's reward parts but the outcome, o the sum of the episode's outcome part. Normalised together,
one outcome of 1 among many small turn rewards would set the scale of all; in IGPO's paper it does, see ``igpo``. That
compares a turn's reward with those of all turns of the task, ``mt_grpo`` with those of the same number; both count 0
for the turns after an episode's end, see ``unbiased_to_go``. A group of one
episode gives 0, though its turns differ: nothing says whether the episode was good. So does a group without spread;
without turn rewards and discount this is GRPO.
"""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import OnlyWith, unknown
from manyturn.trainers.credit.batch.backward_recursion import Timeline
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


def unbiased_to_go(batch: TurnBatch, reward_K: FloatK, config: TurnLevelConfig, *, same_turn: bool) -> FloatK:
    """Sum over j >= k of gamma^(j-k) N(r_j), with 0 for r_j after an episode's end, up to its group's longest episode.

    To go on is the policy's choice. A mean over played turns only charges each further turn, so that going on looks
    worthless; here every episode of a group is charged for as many turns. Two small rewards are worth more than one
    large one, though no other episode took a second turn:

    >>> batch = TurnBatch.from_episodes([[1.0], [0.75, 0.75]], groups=[0, 0])
    >>> unbiased_to_go(batch, batch.reward_K, TurnLevelConfig(name="any", std=False), same_turn=True)
    array([-0.25 ,  0.25 ,  0.375])
    >>> unbiased_to_go(batch, batch.reward_K, TurnLevelConfig(name="any", std=False), same_turn=False)
    array([-0.25 ,  0.25 ,  0.125])

    Args:
        reward_K: rewards, NaN where unscorable.
        same_turn: compare with the turns of the same number in the group; otherwise with all its turns.
    """
    turns, (_, id_K) = int(batch.turn_K.max()) + 1, np.unique(batch.group_K, return_inverse=True)
    grid_EI = np.zeros((len(batch.truncated_E), turns))
    grid_EI[batch.episode_K, batch.turn_K] = reward_K
    grid_EI[np.isnan(grid_EI[:, 0])] = np.nan
    group_E = np.empty(len(grid_EI), np.int64)
    group_E[batch.episode_K] = id_K
    longest_G = np.zeros(int(id_K.max()) + 1, np.int64)
    scored_K = ~np.isnan(reward_K)
    np.maximum.at(longest_G, id_K[scored_K], batch.turn_K[scored_K] + 1)
    grid_EI[np.arange(turns) >= longest_G[group_E][:, None]] = np.nan
    like_EI = np.broadcast_to(group_E[:, None] * turns, grid_EI.shape) + same_turn * np.arange(turns)
    several_E = np.bincount(group_E, ~np.isnan(grid_EI[:, 0]))[group_E] > 1
    value_P = grid_EI.ravel()
    compared_EI = normalised(value_P, like_EI.ravel(), ~np.isnan(value_P), config).reshape(grid_EI.shape)
    compared_EI *= several_E[:, None]
    for turn in range(turns - 2, -1, -1):
        compared_EI[:, turn] += config.gamma * compared_EI[:, turn + 1]
    return compared_EI[batch.episode_K, batch.turn_K]


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
