"""Situation GAE: values are means over the visits to a situation, and are trusted as far as it was visited.

    A_k = delta_k + gamma lambda(s_k+1) A_k+1 - penalty_k        delta_k = r_k + gamma V(s_k+1) - V(s_k);  V(end) = 0
    V(s) = (n(s) mean of G over the visits to s + prior b(s)) / (n(s) + prior)         G_k = sum_(j>=k) gamma^(j-k) r_j
    lambda(s) = prior / (prior + m(s))
    n(s): visits to s by the task's episodes;  m(s): its visits by other episodes than k's
    b(s): the critic's value at the turn, where the run has one; else the mean of G over the task's turns of its number

Shapes: turns K -> advantage_K.
Source: ours. It puts together what others do apart: values along the graph of situations (G2PO, arXiv 2606.22995), a
prior for those that few visited (RTMC, arXiv 2604.11037), the recursion of GAE (arXiv 1506.02438), here with a lambda
of each situation, and a critic or branches where a run has them.

Implementation:
1. Where a situation came back often, its mean stands for all that may follow, and the luck of the own episode counts
   little. Where it did not, lambda is 1: the advantage is what was still earned less b, times prior / (1 + prior),
   since V holds the own return too.
2. The prior is of what is left to earn: the mean over the episodes that got to a turn of this number. With the return
   of full episodes in its place, which rewards before the turn are part of, to stop could be worth more than to go on.
   A turn that only one episode reached is compared with itself and earns 0: of the only long success, the last turns.
3. With ``critic`` values of a head are the prior. Where situations come back they hardly matter; where the state
   decides and nothing comes back, this is GAE of turns with lambda 1.
4. Branches (``rollout.branching``) visit situations again, so that forks need no method of their own here.
5. Truncated episodes count as they ended. A group of one gives 0. Every token of a turn gets the turn's advantage.
6. With ``std`` the task's advantages are divided by their standard deviation, ddof 0.

Differences: none, for there is no paper. Values hold the own episode's return too, which biases them towards it; G2PO
and RTMC do so as well.

Where anchors forget what decides, a mean over situations that were never the same is trusted all the same: the credit
audit shows that before a run (docs/credit-audit.md).

Watch: ``trusted``, the mean of 1 - lambda: near 0, it is a return against a mean. ``mean_anchor_size``.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import anchor_diagnostics
from manyturn.trainers.credit.groups.group_statistics import counted, group_statistics
from manyturn.trainers.credit.groups.situation_graph import node_means
from manyturn.trainers.credit.groups.situations import SituationConfig, next_row, paired, situations
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage

ROUNDING = 1e-8  # spread below which all advantages of a task are the same


class SituationGaeConfig(SituationConfig):
    compares_groups: ClassVar[bool] = True
    name: Literal["situation_gae"] = "situation_gae"
    gamma: float = Field(default=0.9, ge=0, le=1)
    """Discount per turn."""
    prior: float = Field(default=1.0, gt=0)
    """Visits that the prior counts for, in values and in the trust in them."""
    critic: bool = False
    """Take a critic's values for the prior, which ``[value]`` learns; without it the mean over turns of one number."""
    std: bool = True
    """Divide by the standard deviation of the task's advantages."""

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"value"} if self.critic else ())


@ADVANTAGES.register(SituationGaeConfig)
def situation_gae(batch: TurnBatch, config: SituationGaeConfig) -> Advantage:
    """Advantage of every turn.

    Both came through "hall", whose value is that of the task: their first turns gain nothing, and what they did there
    decides.

    >>> anchors = [["yard", "hall"], ["cave", "hall"]]
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0]], groups=[0, 0], anchors=anchors)
    >>> situation_gae(batch, SituationGaeConfig(gamma=1.0, std=False)).total_K
    array([ 0. ,  0.5,  0. , -0.5])
    """
    situation_K, scorable_K = situations(batch, config), batch.scorable_K
    members = group_statistics(batch.episode_return_E()[batch.episode_K], batch.group_K, counted(batch, "episodes"))
    return_K, next_K = batch.turn_return_K(config.gamma) + batch.penalty_K, next_row(batch)
    visits_K = group_statistics(return_K, situation_K, scorable_K).count_K
    own_K = group_statistics(return_K, paired(situation_K, batch.episode_K), scorable_K).count_K
    before_K = _critic(batch) if config.critic else _at_number(batch, return_K)
    seen_K = np.nan_to_num(node_means(return_K, situation_K, scorable_K))
    value_K = (visits_K * seen_K + config.prior * before_K) / (visits_K + config.prior)
    lambda_K: FloatK = np.divide(config.prior, config.prior + visits_K - own_K, dtype=np.float64)
    after_K = np.where(next_K >= 0, value_K[next_K], 0.0)
    gain_K = np.where(scorable_K, np.nan_to_num(batch.reward_K) + config.gamma * after_K - value_K, 0.0)
    total_K = _accumulated(batch, gain_K, config.gamma * lambda_K, next_K)
    total_K = np.where(scorable_K & (members.count_K > 1), total_K, 0.0)
    if config.std:
        total_K = total_K / _spread(total_K, batch)
    trusted = float((1 - lambda_K[scorable_K]).mean()) if scorable_K.any() else 0.0
    figures = {**anchor_diagnostics(situation_K, scorable_K), "trusted": trusted}
    targets_T = _targets(batch, return_K) if config.critic else None
    return Advantage(total_K - batch.penalty_K, {}, figures, targets_T=targets_T)


def _at_number(batch: TurnBatch, return_K: FloatK) -> FloatK:
    """Mean (K) of the returns from the turns that have the same number in an episode of the task."""
    return group_statistics(return_K, paired(batch.group_K, batch.turn_K), batch.scorable_K).mean_K


def _critic(batch: TurnBatch) -> FloatK:
    """The critic's value (K) at the first token of each turn; 0 for a reply without tokens."""
    value_T, first_K = batch.token_column("value"), np.cumsum(batch.tokens_K) - batch.tokens_K
    padded_T = np.append(value_T, 0.0)
    return np.nan_to_num(np.where(batch.tokens_K > 0, padded_T[np.minimum(first_K, len(value_T))], 0.0))


def _targets(batch: TurnBatch, return_K: FloatK) -> FloatK:
    """Targets of the critic (T): the turn's return, at its first token."""
    targets_T = np.full(int(batch.tokens_K.sum()), np.nan)
    spoken_K = batch.tokens_K > 0
    targets_T[(np.cumsum(batch.tokens_K) - batch.tokens_K)[spoken_K]] = return_K[spoken_K]
    return targets_T


def _accumulated(batch: TurnBatch, gain_K: FloatK, factor_K: FloatK, next_K: IntK) -> FloatK:
    """Each turn's gain (K), and that of the turns after it, weakened by the factors of the situations on the way."""
    total_K = gain_K.copy()
    for turn in range(int(batch.turn_K.max()) - 1, -1, -1):
        rows = np.flatnonzero((batch.turn_K == turn) & (next_K >= 0))
        total_K[rows] += factor_K[next_K[rows]] * total_K[next_K[rows]]
    return total_K


def _spread(gain_K: FloatK, batch: TurnBatch) -> FloatK:
    """Standard deviation (K, ddof 0) over the scorable turns of the task; 1 where there is none."""
    statistics = group_statistics(gain_K, batch.group_K, batch.scorable_K)
    count_K = np.maximum(statistics.count_K, 1)
    std_K = statistics.std_K * np.sqrt((count_K - 1) / count_K)
    return np.where(std_K > ROUNDING, std_K, 1.0)
