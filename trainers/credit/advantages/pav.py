"""PAV: a turn's value, and on top the progress that it makes under a prover, measured by rollouts from its snapshot.

    A_k = Q(d) - V_0 + alpha (P(Q(d)) - P(V(d))) - penalty_k
    P(q) = 1 - (1 - q)^best_of        success of a prover that takes the best of so many of the policy's own attempts
    Q(d) = rewards before d + r_d + mean over the draws that follow d of what they and their followers earn
    V(d) = mean of Q over the siblings of d, itself included;   V_0: that of the group's first draws
    d: the draw of turn k;  siblings: draws with one and the same past

Shapes: turns K -> advantage_K, with the levels "outcome" and "progress" (K each).
Source: "Rewarding Progress: Scaling Automated Process Verifiers for LLM Reasoning", arXiv 2410.08146: the policy
gradient with Q of the policy plus alpha times the advantage under a prover, which is best-of-K of the policy itself.
Its formulas were read in descriptions by others, and are unverified against its text.

Implementation:
1. Draws, siblings and what follows are those of ``forks``: ``rollout.branching`` makes rollouts from the snapshot of a
   turn, and a draw is learnt from once, in the episode that drew it; its repetitions in branches get 0.
2. Along an episode the progress of its draws sums to P(its return) - P(V_0): a potential, which pays no episode for
   being long.
3. With ``best_of = 1`` the prover is the policy, and progress is what a turn changes of its own value. The higher it
   is, the more counts a turn that keeps a chance where others lose it, and the less one that makes a likely success
   sure.
4. P is of chances: a return is clipped to 0 to 1 before it. Rewards beyond success need a scale that keeps within.
5. P of a mean over few rollouts is off: of a single one it is 0 or 1, whatever ``best_of`` is.
6. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended. Unscorable ones are left out
   of Q, and a draw that leads to nothing else gets 0.

Differences: theirs trains a verifier on rollouts of the prover, once, which then scores each step of new episodes; here
the step's own branches are the rollouts, and nothing is trained. Their steps are of one reply, and here turns. The
baseline V_0, and alpha = 1, are ours: theirs is chosen for each model.

Watch: ``compared_draws`` near 0: nothing forks, and progress is made at first turns and last ones only. ``turns``
should not rise with ``success`` unchanged. ``drawn_tokens`` is what the branches cost.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.draws import draw_values, draws
from manyturn.trainers.credit.groups.group_statistics import group_statistics
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage, StageConfig


class PavConfig(StageConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"drawer"})
    compares_groups: ClassVar[bool] = True
    name: Literal["pav"] = "pav"
    alpha: float = Field(default=1.0, gt=0)
    """Weight of the progress under the prover, next to the turn's own value."""
    best_of: int = Field(default=4, ge=1)
    """Attempts of the policy of which the prover takes the best; 1: the prover is the policy."""


@ADVANTAGES.register(PavConfig)
def pav(batch: TurnBatch, config: PavConfig) -> Advantage:
    """Advantage of every turn.

    The second episode is a branch of the first: it repeats its first turn, draws the second again, and fails. The third
    begins by itself, and fails. Q is 0.5 for the first turn of the first and 0 for that of the third, V_0 is 0.25.

    >>> columns = {"drawer": [[0, 0], [0, 1], [2]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0], [0]], groups=[0, 0, 0], columns=columns)
    >>> earned = pav(batch, PavConfig(best_of=2))
    >>> earned.levels["outcome"], earned.levels["progress"]
    (array([ 0.25,  0.75,  0.  , -0.25, -0.25]), array([ 0.3125,  0.25  ,  0.    , -0.75  , -0.4375]))
    >>> earned.total_K
    array([ 0.5625,  1.    ,  0.    , -1.    , -0.6875])
    """
    past_K, draw_K, own_K = draws(batch)
    value_K = earned_before(batch) + draw_values(batch, past_K, draw_K, gamma=1.0)
    counted_K = own_K & ~np.isnan(value_K)
    value_K = np.nan_to_num(value_K)
    siblings, starts_K = group_statistics(value_K, past_K, counted_K), counted_K & (batch.turn_K == 0)
    start_K = group_statistics(value_K, batch.group_K, starts_K).mean_K
    outcome_K = np.where(counted_K, value_K - start_K, 0.0)
    progress_K = proven(value_K, config.best_of) - proven(siblings.mean_K, config.best_of)
    progress_K = np.where(counted_K, config.alpha * progress_K, 0.0)
    total_K = np.where(counted_K, outcome_K + progress_K - batch.penalty_K, 0.0)
    figures = {"compared_draws": float((siblings.count_K[counted_K] > 1).mean()) if counted_K.any() else 0.0}
    return Advantage(total_K, {"outcome": outcome_K, "progress": progress_K}, figures)


def earned_before(batch: TurnBatch) -> FloatK:
    """Sum of the rewards of the turns before each turn (K) of its episode; NaN where the episode is unscorable.

    >>> earned_before(TurnBatch.from_episodes([[1, 2, 4], [8]], groups=[0, 0]))
    array([0., 1., 3., 0.])
    """
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    reward_K = np.where(batch.scorable_K, batch.reward_K, 0.0)[order_K]
    before_K = np.cumsum(reward_K) - reward_K
    first_K = np.maximum.accumulate(np.where(batch.turn_K[order_K] == 0, np.arange(len(order_K)), 0))
    earned_K = np.empty(len(order_K))
    earned_K[order_K] = before_K - before_K[first_K]
    return np.where(batch.scorable_K, earned_K, np.nan)


def proven(chance_K: FloatK, best_of: int) -> FloatK:
    """Chance (K) that at least one of so many attempts succeeds.

    >>> proven(np.array([-1.0, 0.5, 2.0]), 2)
    array([0.  , 0.75, 1.  ])
    """
    return 1 - (1 - np.clip(chance_K, 0.0, 1.0)) ** best_of
