"""iStar: an episode's return against its task's, plus each turn's implicit reward against those of the task's turns.

    A_k = N(s_k) + turn_weight N(r_k)
    r_k: the column "implicit", beta sum over tokens of turn k of log pi_phi(token) - log pi(token)
    N(x) = (x - mean) n / (n - 1) (``leave_one_out``), x - mean (``mean``) or (x - mean) / (std + eps) (``std``), ddof 1
    for s over the n episodes of the task, for r over its n turns

Shapes: turns K -> advantage_K, with levels "episode" and "turn" (K each).
Source: Agentic Reinforcement Learning with Implicit Step Rewards (iStar), arXiv 2509.19199; numbers agree with the
authors' code (Tongyi-ConvAI/Tongyi-Character, ``CharacterRL-iStar/istar/core_istar.py``) under ``stats_over =
"first_rows", singleton = "raw"``.

Implementation:
1. pi is the policy that played, pi_phi a second model that learns after each step which of two episodes of a task did
   better (``learn/heads/implicit_reward.py``). In the first step both are one, and r is 0.
2. A turn's score is its episode's return less the turn's own penalty. A penalty is in no implicit reward.
3. With ``stats_over = "first_rows"`` both levels count the first turn of each episode and no other.
4. A task with one scorable episode gives 0 at the episode level, one with one turn at the turn level.

Differences: their statistics of turns are over first turns only, where the paper has all turns of the task; ours are
the paper's. Their n is then of episodes, for turns too.

Watch: ``implicit_pairs``, the pairs that the second model learnt from: 0 where all of a task do alike.
``implicit_won``, the share of pairs that it had in the right order before: near 0.5, its rewards are noise.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import (
    EPS,
    GroupConfig,
    GroupStatistics,
    Singleton,
    counted,
    deviation,
    group_statistics,
    score_statistics,
    standardised,
)
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class IstarConfig(GroupConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"implicit"})
    compares_returns_only: ClassVar[bool] = True
    name: Literal["istar"] = "istar"
    norm: Literal["leave_one_out", "mean", "std"] = "leave_one_out"
    """What a score and an implicit reward are compared with, and in which unit."""
    turn_weight: float = Field(default=1.0, gt=0)
    """Weight of the turn level."""
    eps: Annotated[float, OnlyWith("norm", "std")] = Field(default=EPS, ge=0)
    """Added to the standard deviations."""


@ADVANTAGES.register(IstarConfig)
def istar(batch: TurnBatch, config: IstarConfig) -> Advantage:
    """Advantage of every turn.

    >>> implicit = {"implicit": [[0.5, 0.0], [-0.5, 0.0]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0]], groups=[0, 0], columns=implicit)
    >>> istar(batch, IstarConfig(norm="mean")).total_K
    array([ 1. ,  0.5, -1. , -0.5])
    """
    episode = score_statistics(batch, batch.group_K, config.stats_over)
    implicit_K = np.where(batch.scorable_K, batch.column("implicit"), np.nan)
    counted_K = counted(batch, "first_rows") if config.stats_over == "first_rows" else batch.scorable_K
    turn = group_statistics(implicit_K, batch.group_K, counted_K)
    if not np.isfinite(implicit_K[batch.scorable_K]).all():
        place = int(np.flatnonzero(batch.scorable_K & ~np.isfinite(implicit_K))[0])
        raise ValueError(f"the implicit reward of turn {place} of the batch is not a number: give one for each turn")
    episode_K = _compared(batch.score_K(), episode, config.singleton, config)
    turn_K = _compared(implicit_K, turn, config.singleton, config)
    return Advantage(episode_K + config.turn_weight * turn_K, {"episode": episode_K, "turn": turn_K})


def _compared(value_K: FloatK, statistics: GroupStatistics, singleton: Singleton, config: IstarConfig) -> FloatK:
    """N of the formula (K)."""
    if config.norm == "std":
        return standardised(value_K, statistics, singleton, config.eps)
    deviation_K = deviation(value_K, statistics, singleton)
    if config.norm == "mean":
        return deviation_K
    others_K = statistics.count_K - 1
    return deviation_K * np.where(others_K > 0, statistics.count_K / np.maximum(others_K, 1), 1.0)
