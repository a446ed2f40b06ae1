"""G2PO: turns as edges of the task's graph of situations, judged by what they lead to and by what they gain.

    A_k = v A^E_k + w (N_k + D_k)
    A^E_k = norm of the score s_k over the episodes of the task                          (as in GiGPO)
    N_k = norm of y_k - penalty_k over the turns in k's situation;   y_k = r_k + V(k')
    D_k = norm of what the turn gains over all turns of the task
    gain = "difference": y_k - V(k)                 gain = "td": gamma y_k - V(k)
    V(k) = mean over all visits j to k's situation of G_j;  G_j = sum_(i>=j) gamma^(i-j+1) r_i;  V after the end is 0
    norm(x) = x - mean (``mean_norm``) or (x - mean) / (std + eps) (``mean_std_norm``), ddof 1

Shapes: turns K -> advantage_K, with the levels "episode", "node" and "edge" (K each, before v and w).
Source: Group-Graph Policy Optimization, arXiv 2606.22995; numbers agree with the authors' code (Nala-YN/G2PO,
``g2po/core_g2po.py``) under ``stats_over = "rows", singleton = "raw"``, which are its settings.

Implementation:
1. Returns are discounted once more than GiGPO's, so that V is 0.95 of a success before its last turn.
2. Episodes of one task share V: where situations come back, a turn's value rests on all that was seen from there, and
   the return of its own episode counts no more than the others'.
3. A turn that is alone in its situation has N = 0. D compares it with the task's other turns all the same.
4. ``compare`` leaves one of N and D out. Every token of a turn gets the turn's advantage. Truncated episodes count as
   they ended.
5. Statistics are in float64; a group without spread gives exactly 0.

Differences: their code knows one reward, at the end; rewards of turns are ours. With "difference", which is theirs,
equal successful episodes have turns of different gain, for V grows towards the end: late turns are praised and early
ones blamed. "td" is the error of Bellman's equation, and 0 there. ``situation`` is ours: where the anchor forgets what
decides, V is the mean of situations that were never the same.

Watch: ``mean_anchor_size`` near 1: V is the return of one episode, D little more than the sign of the outcome at the
last turn, and all before it gains nothing.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import anchor_diagnostics
from manyturn.trainers.credit.groups.situation_graph import node_means
from manyturn.trainers.credit.groups.situations import next_row, situations
from manyturn.trainers.credit.groups.two_level_advantage import TwoLevelConfig, episode_level, norm
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class G2poConfig(TwoLevelConfig):
    name: Literal["g2po"] = "g2po"
    episode_weight: float = Field(default=1.0, ge=0)
    """Weight v of the episode level."""
    compare: Annotated[Literal["both", "node", "edge"], OnlyWith("turn_weight")] = "both"
    """What a turn is compared with: turns of its situation (node), by where they led; or all turns of the task (edge),
    by what they gained."""
    gain: Annotated[Literal["difference", "td"], OnlyWith("compare", "both", "edge")] = "difference"
    """Whether the value that a turn led to is discounted when the value before it is taken off."""
    gamma: Annotated[float, OnlyWith("turn_weight")] = Field(default=0.95, ge=0, le=1)
    """Discount per turn."""


@ADVANTAGES.register(G2poConfig)
def g2po(batch: TurnBatch, config: G2poConfig) -> Advantage:
    """Advantage of every turn, with its levels.

    From "hall" one episode of two came to the cellar's dead end. Its first turn is blamed, its second gains nothing.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0]], [0, 0], anchors=[["hall", "attic"], ["hall", "cellar"]])
    >>> levels = g2po(batch, G2poConfig(gamma=1.0)).levels
    >>> levels["node"], levels["edge"]
    (array([ 0.5,  0. , -0.5,  0. ]), array([ 0.5,  0. , -0.5,  0. ]))
    """
    situation_K = situations(batch, config)
    reached_K, value_K = edge_values(batch, situation_K, config.gamma)
    discount = config.gamma if config.gain == "td" else 1.0
    levels = {
        "episode": episode_level(batch, batch.score_K(), config),
        "node": norm(reached_K - batch.penalty_K, situation_K, batch.scorable_K, config),
        "edge": norm(discount * reached_K - value_K, batch.group_K, batch.scorable_K, config),
    }
    compared = ("node", "edge") if config.compare == "both" else (config.compare,)
    turn_K = sum((levels[name] for name in compared), start=np.zeros(len(value_K)))
    total_K = config.episode_weight * levels["episode"] + config.turn_weight * turn_K
    return Advantage(total_K, levels, anchor_diagnostics(situation_K, batch.scorable_K))


def edge_values(batch: TurnBatch, situation_K: IntK, gamma: float) -> tuple[FloatK, FloatK]:
    """Worth of the situation after each turn, its reward included (y, K), and value of the situation before it (V, K).

    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0]], [0, 0], anchors=["ab", "ac"])
    >>> edge_values(batch, np.array([0, 1, 0, 2]), 0.5)
    (array([0.5, 1. , 0. , 0. ]), array([0.125, 0.5  , 0.125, 0.   ]))
    """
    return_K = gamma * (batch.turn_return_K(gamma) + batch.penalty_K)
    value_K, next_K = node_means(return_K, situation_K, batch.scorable_K), next_row(batch)
    after_K = np.where(next_K >= 0, value_K[next_K], 0.0)
    return np.where(batch.scorable_K, batch.reward_K + after_K, np.nan), value_K
