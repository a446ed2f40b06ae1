"""REINFORCE++ with a baseline: an episode's score minus its task's mean, whitened over the batch.

    A_k = (d_k - mean d) / std d        d_k = s_k - mean_g s        s_k: score of turn k's episode, g: its group

Shapes: turns K -> advantage_K.
Source: REINFORCE++, arXiv 2501.03262, section on the baseline; numbers agree with
``compute_reinforce_plus_plus_baseline_outcome_advantage`` of verl under ``singleton = "raw"``.

Implementation:
1. A turn's score is its episode's return, less the turn's own penalty; every token of the turn gets its advantage.
2. mean d and std d count every reply token, as each gets its turn's advantage.
3. All tasks are divided by one standard deviation: unlike in GRPO a task with hardly any spread does not weigh as much
   as one with a lot.
4. A group of one gives d = 0 (``singleton``). Truncated episodes count as they ended.

Differences: verl gives a group of one its raw score. The paper puts KL into the loss with an unbiased gradient (k2),
which belongs to the objective.

Watch: ``groups_without_signal``: whitening makes up for few groups with signal by larger advantages, so that the rest
learn from less evidence at the same ``advantage_std``.
"""

from typing import ClassVar, Literal

from manyturn.trainers.credit.batch.reply_tokens import whitened
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import GroupConfig, deviation, score_statistics
from manyturn.trainers.credit.stages import ADVANTAGES


class ReinforcePpBaselineConfig(GroupConfig):
    compares_returns_only: ClassVar[bool] = True
    name: Literal["reinforce_pp_baseline"] = "reinforce_pp_baseline"


@ADVANTAGES.register(ReinforcePpBaselineConfig)
def reinforce_pp_baseline(batch: TurnBatch, config: ReinforcePpBaselineConfig) -> FloatK:
    """Advantage of every turn.

    >>> batch = TurnBatch.from_episodes([[0, 3], [1], [0], [0]], groups=[0, 0, 1, 1])
    >>> reinforce_pp_baseline(batch, ReinforcePpBaselineConfig()).round(3)
    array([ 0.956,  0.956, -1.434, -0.239, -0.239])
    """
    score_K = batch.score_K()
    statistics = score_statistics(batch, batch.group_K, config.stats_over)
    return whitened(deviation(score_K, statistics, config.singleton), batch.tokens_K * batch.scorable_K)
