"""RTMC: what an action was worth in a situation, against what the situation was worth; both are means over episodes.

    A_k = (Q(s_k, a_k) - V(s_k)) / std - penalty_k
    Q(s, a) = mean over episodes of G at the first turn with situation s and action a
    G_k = sum_(j>=k) gamma^(j-k) r_j
    V(s) = (n(s) mean of Q(s, a) by visits + prior R) / (n(s) + prior)
    n(s) = sum over actions of the episodes that took it in s;   R = mean return of the task's episodes
    std: standard deviation of Q - V over the task's turns, ddof 0; 1 without ``std``

Shapes: turns K -> advantage_K.
Source: Rollout-Tree Monte Carlo, arXiv 2604.11037, equation 11 for the prior. Numbers agree with code of others
(alexngai/prime-rl-fork, ``orchestrator/algo/rtmc_sig.py``); none of the authors is public.

Implementation:
1. Which action a turn took is the column "action"; equal numbers are the same action. A run numbers the texts of
   actions.
2. Of an episode that takes an action in a situation several times the first time counts; all its turns get that Q.
3. An action that no other episode took there has the return of its own episode for Q. The prior keeps V away from it
   where few came: with prior 0 a turn that is alone in its situation gets 0.
4. Nothing is centred: the mean advantage of a task is not 0 where R is not the mean discounted return.
5. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended. A task whose episodes all
   earned the same gives 0 where nothing is discounted.

Differences: their states are signatures of a coding agent's past, such as which files it has read; here a state is the
environment's anchor, and ``situation`` adds to it. Rewards of turns are ours. A group of one gives 0 here.

Watch: ``actions_compared``, the share of turns in situations where more than one action was tried: elsewhere Q - V is
the prior's doing. ``mean_anchor_size`` near 1: situations hardly come back.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import anchor_diagnostics, equal_anchors
from manyturn.trainers.credit.groups.group_statistics import counted, group_statistics
from manyturn.trainers.credit.groups.situation_graph import node_means
from manyturn.trainers.credit.groups.situations import SituationConfig, paired, situations
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage

ROUNDING = 1e-8  # spread below which all advantages of a task are the same


class RtmcConfig(SituationConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"action"})
    name: Literal["rtmc"] = "rtmc"
    gamma: float = Field(default=0.99, ge=0, le=1)
    """Discount per turn of the turns' returns."""
    prior: float = Field(default=2.0, ge=0)
    """Visits that the task's mean return counts for in the value of a situation."""
    std: bool = True
    """Divide by the standard deviation of the task's advantages."""


@ADVANTAGES.register(RtmcConfig)
def rtmc(batch: TurnBatch, config: RtmcConfig) -> Advantage:
    """Advantage of every turn.

    Two of three went "left" in "hall", one with success: Q is 0.5 for left and 0 for right, V is 1/3.

    >>> columns = {"action": [[0], [0], [1]]}
    >>> batch = TurnBatch.from_episodes([[1], [0], [0]], [0] * 3, anchors=[["hall"]] * 3, columns=columns)
    >>> rtmc(batch, RtmcConfig(gamma=1.0, std=False)).total_K.round(3)
    array([ 0.167,  0.167, -0.333])
    """
    situation_K = situations(batch, config)
    tried_K = paired(situation_K, actions(batch))
    return_K, first_K = batch.turn_return_K(config.gamma) + batch.penalty_K, first_visits(batch, tried_K)
    visits_K = group_statistics(return_K, situation_K, first_K).count_K
    members = group_statistics(batch.episode_return_E()[batch.episode_K], batch.group_K, counted(batch, "episodes"))
    seen_K = np.nan_to_num(node_means(return_K, situation_K, first_K))
    value_K = (visits_K * seen_K + config.prior * members.mean_K) / np.maximum(visits_K + config.prior, 1.0)
    gain_K = node_means(return_K, tried_K, first_K) - value_K
    gain_K = np.where(batch.scorable_K & (members.count_K > 1), gain_K, 0.0)
    if config.std:
        gain_K = gain_K / _spread(gain_K, batch)
    several_K = group_statistics(tried_K.astype(np.float64), situation_K, batch.scorable_K).std_K > 0
    figures = {"actions_compared": float(several_K[batch.scorable_K].mean()) if batch.scorable_K.any() else 0.0}
    return Advantage(gain_K - batch.penalty_K, {}, {**anchor_diagnostics(situation_K, batch.scorable_K), **figures})


def actions(batch: TurnBatch) -> IntK:
    """The column "action" as numbers (K); raises ValueError where a turn has none."""
    action_K = batch.column("action")
    if not np.isfinite(action_K).all():
        place = int((~np.isfinite(action_K)).argmax())
        raise ValueError(f"the column 'action' is {action_K[place]} at turn {place} of the batch: number each action")
    return np.unique(action_K, return_inverse=True)[1]


def _spread(gain_K: FloatK, batch: TurnBatch) -> FloatK:
    """Standard deviation (K, ddof 0) over the scorable turns of the task; 1 where there is none."""
    statistics = group_statistics(gain_K, batch.group_K, batch.scorable_K)
    count_K = np.maximum(statistics.count_K, 1)
    std_K = statistics.std_K * np.sqrt((count_K - 1) / count_K)
    return np.where(std_K > ROUNDING, std_K, 1.0)


def first_visits(batch: TurnBatch, tried_K: IntK) -> BoolK:
    """True for the turn (K) that is its episode's first with this situation and action.

    >>> batch = TurnBatch.from_episodes([[0, 0, 0], [0]], [0, 0])
    >>> first_visits(batch, np.array([5, 7, 5, 5]))
    array([ True,  True, False,  True])
    """
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    pair_K = equal_anchors(batch.episode_K, tried_K)[order_K]
    first_K = np.zeros(len(order_K), bool)
    first_K[order_K[np.unique(pair_K, return_index=True)[1]]] = True
    return first_K & (tried_K >= 0)
