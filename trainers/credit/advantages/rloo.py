"""RLOO: an episode's score against the mean of the others of its task.

    A_k = s_k - mean of the other n-1 scores = n/(n-1) (s_k - mean_g s)        s_k: score of turn k's episode

Shapes: turns K -> advantage_K.
Source: REINFORCE leave-one-out, Kool et al. 2019; Ahmadian et al., arXiv 2402.14740, section 2.2. Numbers agree with
``compute_rloo_outcome_advantage`` of verl and, with several turns per episode, of verl-agent.

Implementation:
1. A turn's score is its episode's return, less the turn's own penalty; every token of the turn gets its advantage.
2. n counts the group's scorable episodes; errors have left it. A group of one gives 0 (``singleton``).
3. Nothing is divided by a standard deviation: the advantage has the scale of the returns.
4. Truncated episodes count as they ended: no critic says what would come.

Differences: the paper takes a full reply for one action and a plain policy gradient, which is the objective
``reinforce`` with one update a step. verl-agent counts turns (``stats_over = "rows"``): the others of a turn then
include turns of its own episode, so that the baseline depends on the action it judges, and the estimate is biased; it
is there for parity.

Watch: ``advantage_std`` has the scale of the returns and falls as groups agree; ``groups_without_signal`` near 1 leaves
nothing to learn from.
"""

from typing import ClassVar, Literal

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import GroupConfig, deviation, score_statistics
from manyturn.trainers.credit.stages import ADVANTAGES


class RlooConfig(GroupConfig):
    compares_returns_only: ClassVar[bool] = True
    name: Literal["rloo"] = "rloo"


@ADVANTAGES.register(RlooConfig)
def rloo(batch: TurnBatch, config: RlooConfig) -> FloatK:
    """Advantage of every turn.

    >>> rloo(TurnBatch.from_episodes([[0, 3], [0], [0]], groups=[0, 0, 0]), RlooConfig())
    array([ 3. ,  3. , -1.5, -1.5])
    """
    score_K = batch.score_K()
    statistics = score_statistics(batch, batch.group_K, config.stats_over)
    others_K = statistics.count_K - 1
    factor_K = np.where(others_K > 0, statistics.count_K / np.maximum(others_K, 1), 1.0)
    return factor_K * deviation(score_K, statistics, config.singleton)
