"""HGPO: turns of one situation compared at several depths of shared history, the deeper comparisons weighing more.

    A_k = sum over d in D_k of w_d N_d(G_k),   w_d = (d + 1)^alpha / sum over d' in D_k of (d' + 1)^alpha
    N_d(G_k) = norm of the return G_k over the turns of the task whose last d anchors, their own included, are k's
    G_k = sum_(j>=k) gamma^(j-k) r_j - penalty_k
    D_k: the depths 1 .. history + 1 that the episode has reached and at which N_d(G_k) is other than 0
    ``episodes``: depth 0 is the comparison of episodes, as in GiGPO
    norm(x) = (x - mean) / (std + eps) (``mean_std_norm``, ddof 0) or x - mean (``mean_norm``)

Shapes: turns K -> advantage_K, with a level for each depth, such as "depth 1" (K each, before w).
Source: Hierarchy-of-Groups Policy Optimization, arXiv 2602.22817; numbers agree with the authors' code
(langfengQ/verl-agent, ``recipe/hgpo/core_hgpo.py``) under ``stats_over = "rows", singleton = "raw"``.

Implementation:
1. Turns in one situation that came there by different ways are not quite comparable: what was read before is another
   prompt. Depth 1 has many turns with that bias, the deepest has few without it.
2. ``history`` is the number of turns before this one that the policy's context shows; give that of ``agent.context``.
3. A turn that is alone at a depth, or equal to its mean there, leaves that depth out, and the weights of the others sum
   to 1. A turn that is alone at all depths gets 0: no outcome of its episode reaches it, unless ``episodes`` is on.
4. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended.
5. Statistics are in float64; a group without spread gives exactly 0.

Differences: the sum of weights has an eps in their code, which ours leaves out (1e-6 of the advantage at most). Their
paper calls the number of shared anchors k, so that its k = 1 is our depth 1.

Watch: ``singleton_anchors`` is of depth 1; turns that are alone there get nothing, and ``advantage_std`` below GRPO's
says so. ``deepest_compared``, the share of turns with a comparison at the greatest depth: near 0, histories never come
back and HGPO is GiGPO's turn level.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import anchor_diagnostics
from manyturn.trainers.credit.groups.group_statistics import (
    EPS,
    GroupConfig,
    Singleton,
    StatsOver,
    deviation,
    group_statistics,
    score_statistics,
    standardised,
)
from manyturn.trainers.credit.groups.situations import anchor_groups, paired, previous_row
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage

ROUNDING = 1e-9  # share of a return below which a difference from the mean is none


class HgpoConfig(GroupConfig):
    name: Literal["hgpo"] = "hgpo"
    mode: Literal["mean_norm", "mean_std_norm"] = "mean_std_norm"
    """Whether comparisons are divided by their standard deviation."""
    history: int = Field(default=2, ge=0)
    """Turns before this one that a history may have in common."""
    alpha: float = Field(default=1.0, ge=0)
    """How much more a deeper comparison weighs; 0: all alike."""
    gamma: float = Field(default=0.95, ge=0, le=1)
    """Discount per turn of the turns' returns."""
    episodes: bool = False
    """Compare episodes too, with the least weight."""
    stats_over: Annotated[StatsOver, OnlyWith("episodes")] = "episodes"
    """What counts once where episodes are compared; see ``grpo``."""
    singleton: Annotated[Singleton, OnlyWith("episodes")] = "zero"
    """What an episode that is alone in its group gets at depth 0: 0, or its raw score."""
    eps: Annotated[float, OnlyWith("mode", "mean_std_norm")] = Field(default=EPS, ge=0)
    """Added to the standard deviations."""

    @property
    def turn_discount(self) -> float | None:
        return None if self.episodes else self.gamma


@ADVANTAGES.register(HgpoConfig)
def hgpo(batch: TurnBatch, config: HgpoConfig) -> Advantage:
    """Advantage of every turn, with its comparison at each depth.

    All three came to "hall". The first two came from "yard", so that depth 2 compares them alone.

    >>> anchors = [["yard", "hall"], ["yard", "hall"], ["hall"]]
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0], [0.5]], [0] * 3, anchors=anchors)
    >>> advantage = hgpo(batch, HgpoConfig(mode="mean_norm", history=1, gamma=1.0))
    >>> advantage.levels["depth 1"], advantage.levels["depth 2"]
    (array([ 0.5,  0.5, -0.5, -0.5,  0. ]), array([ 0. ,  0.5,  0. , -0.5,  0. ]))
    >>> advantage.total_K
    array([ 0.5,  0.5, -0.5, -0.5,  0. ])
    """
    return_K, anchor_K = batch.turn_return_K(config.gamma), anchor_groups(batch)
    levels = {}
    if config.episodes:
        levels["depth 0"] = _episode_level(batch, config)
    for depth, history_K in enumerate(_shared_histories(batch, anchor_K, config.history + 1), 1):
        levels[f"depth {depth}"] = _compared(return_K, history_K, config)
    level_DK = np.array(list(levels.values()))
    depth_D = np.arange(len(levels)) + (0 if config.episodes else 1)
    apart_DK = np.abs(level_DK) > ROUNDING * np.maximum(1.0, np.abs(np.nan_to_num(return_K)))
    weight_DK = apart_DK * ((depth_D + 1.0) ** config.alpha)[:, None]
    total_K = (weight_DK * level_DK).sum(axis=0) / np.maximum(weight_DK.sum(axis=0), 1.0)
    figures = {**anchor_diagnostics(anchor_K, batch.scorable_K), "deepest_compared": float(apart_DK[-1].mean())}
    return Advantage(total_K, levels, figures)


def _shared_histories(batch: TurnBatch, anchor_K: IntK, depths: int) -> list[IntK]:
    """For each depth d from 1 the number (K) of each turn's last d anchors; -1 where its episode has fewer."""
    before_K, anchors = previous_row(batch), [anchor_K]
    for _ in range(1, depths):
        earlier_K = np.where(before_K >= 0, anchors[-1][before_K], -1)
        anchors.append(paired(np.where(earlier_K >= 0, anchor_K, -1), earlier_K))
    return anchors


def _compared(return_K: FloatK, history_K: IntK, config: HgpoConfig) -> FloatK:
    """N_d of the formula (K); 0 for turns that are alone or have no such history."""
    statistics = group_statistics(return_K, history_K, history_K >= 0)
    if config.mode == "mean_norm":
        compared_K = deviation(return_K, statistics, "zero")
    else:
        share_K = np.sqrt(np.maximum(statistics.count_K - 1, 1) / np.maximum(statistics.count_K, 1))
        statistics = statistics._replace(std_K=statistics.std_K * share_K)
        compared_K = standardised(return_K, statistics, "zero", config.eps)
    return np.where(history_K >= 0, compared_K, 0.0)


def _episode_level(batch: TurnBatch, config: HgpoConfig) -> FloatK:
    statistics = score_statistics(batch, batch.group_K, config.stats_over)
    if config.mode == "mean_norm":
        return deviation(batch.score_K(), statistics, config.singleton)
    return standardised(batch.score_K(), statistics, config.singleton, config.eps)
