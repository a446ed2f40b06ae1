"""IGPO: turn rewards and outcomes normalised within the task, then summed over the turns to come.

    baseline = "separate": A_k = sum_(j>=k) gamma^(j-k) N(r_j) - penalty_k,  N among rewards of the group's last turns,
                           or of its other turns
    baseline = "joint":    the same, with N among all rewards of the group's turns
    baseline = "reward":   A_k = sum_(j>=k) gamma^(j-k) N(r_j) + gamma^(last-k) N(o) - penalty_k, with
                           r_j = 0 after an episode's end, up to its group's longest episode; see ``turn_levels``
    baseline = "turn":     A_k = N(G_k) among the turns of the same number in the group
    baseline = "first":    A_k = (G_k - mean G_0) / (std G_0 + eps),  G_0: returns of the group's first turns
    G_k = sum_(j>=k) gamma^(j-k) (all rewards)_j - penalty_k

Shapes: turns K -> advantage_K; with baseline "reward" the levels "turn" and "outcome" (K each).
Source: Information Gain-based Policy Optimization, arXiv 2510.14967, with the information gains of a turn as a reward
part. "separate" is equations 5 and 6 of its second version (March 2026). The authors' code is GuoqingWang1/IGPO.

Implementation:
1. "separate" and "joint" take the sum of a turn's parts as r; the outcome is in that of the last turn, which gains
   nothing else. With "joint" one outcome of 1 among small gains sets the scale of all.
2. For "reward" the outcome is the reward part of that name, everything else is turn reward, also that of last turns.
3. Statistics count the scorable turns, or episodes, of a task; a group of one episode, or without spread, gives 0.
4. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended.
5. With "separate", "joint" and "first" turns of equal episodes get credit other than 0 where their rewards differ.

Differences: the authors' code of February 2026 has "joint" as its default and "separate" in its training script, whose
numbers these are in ``tests/golden``; it divides by the standard deviation of the population, and takes a turn that
gains exactly 0 for a part of the next one. "turn" and "first" are their first release: what it trained with, without
std, and a function that it did not use. By their own word (issue 5 of the repository) that was an early attempt. It
compares tokens of the same number, which do not correspond, and cuts returns at observations; here the unit is the
turn, and returns reach back over all turns. "reward", the default, is ours. Without turn rewards and discount it is
GRPO; "joint" is not, for its mean is over turns.

Watch: with "separate" and "joint", as published, each turn is charged a mean, so that of two episodes of equal gain
and outcome the shorter is better, and the longer where the mean is negative: ``turns`` may move for no reason of the
task's. With "reward" ended episodes are charged as many turns as the group's longest, so that their length is free.
``groups_without_signal`` should be below that of GRPO, since gains separate episodes of one outcome;
``advantage_std`` far above 1 with a flat ``success`` says that gains drown the outcome.
"""

from typing import Annotated, Literal

import numpy as np

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.episode_sums import last_K
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.anchors import equal_anchors
from manyturn.trainers.credit.groups.group_statistics import FlatStd, counted
from manyturn.trainers.credit.groups.turn_level_advantage import (
    TurnLevelConfig,
    normalised,
    normalised_to_go,
    turn_rewards,
    unbiased_to_go,
    with_outcome,
)
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class IgpoConfig(TurnLevelConfig):
    name: Literal["igpo"] = "igpo"
    baseline: Literal["separate", "joint", "reward", "turn", "first"] = "reward"
    """What is normalised: rewards before they are summed, those of last turns separate from the others, all jointly, or
    turn rewards apart from outcomes; or returns, against those of the same turn or the first."""
    outcome: Annotated[str, OnlyWith("baseline", "reward")] = OUTCOME
    """Name of the reward part that is the episode's outcome; the other baselines compare full returns."""
    flat_std: Annotated[FlatStd, OnlyWith("std"), OnlyWith("baseline", "first")] = "one"
    """Standard deviation where first turns have no spread. With zero, which is for parity with the authors' code, what
    later turns deviate by is divided by eps: advantages of a hundred thousand."""


@ADVANTAGES.register(IgpoConfig)
def igpo(batch: TurnBatch, config: IgpoConfig) -> Advantage:
    """Advantage of every turn.

    >>> parts = {"outcome": [[0, 1], [0, 0]], "gain": [[0.5, 0], [-0.5, 0]]}
    >>> batch = TurnBatch.from_episodes(parts, groups=[0, 0])
    >>> igpo(batch, IgpoConfig()).total_K.round(3)
    array([ 1.932,  0.707, -1.932, -0.707])
    >>> igpo(batch, IgpoConfig(baseline="separate", std=False)).total_K
    array([ 1. ,  0.5, -1. , -0.5])
    >>> igpo(batch, IgpoConfig(baseline="joint", std=False)).total_K
    array([ 1.  ,  0.75, -1.  , -0.25])
    >>> igpo(batch, IgpoConfig(baseline="turn", std=False)).total_K
    array([ 1. ,  0.5, -1. , -0.5])
    """
    if config.baseline in ("separate", "joint"):
        reward_K = np.where(batch.scorable_K, batch.reward_K, np.nan)
        like_K = 2 * batch.group_K + last_K(batch) if config.baseline == "separate" else batch.group_K
        return Advantage(normalised_to_go(batch, reward_K, like_K, config) - batch.penalty_K)
    if config.baseline == "reward":
        turn_K = unbiased_to_go(batch, turn_rewards(batch, config), config, same_turn=False)
        return with_outcome(batch, turn_K, config)
    return Advantage(returns_compared(batch, batch.turn_return_K(config.gamma), config))


def returns_compared(batch: TurnBatch, return_K: FloatK, config: IgpoConfig) -> FloatK:
    """N(return) by the baseline "turn" or "first"."""
    if config.baseline == "turn":
        return normalised(return_K, equal_anchors(batch.group_K, batch.turn_K), batch.scorable_K, config)
    return normalised(return_K, batch.group_K, counted(batch, "episodes"), config, config.flat_std)
