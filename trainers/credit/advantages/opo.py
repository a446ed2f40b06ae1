"""OPO: an episode's score against the length-weighted mean of its task, the baseline of least variance.

    A_k = s_k - b_g        b_g = sum_i len_i s_i / sum_i len_i        len_i: reply tokens of episode i of the group

Shapes: turns K -> advantage_K.
Source: On-Policy RL with Optimal reward baseline, arXiv 2505.23585: the baseline that minimises the gradient's
variance, if a token's gradient has about the same norm everywhere, so that an episode's grows with its length. Numbers
agree with ``compute_opo_outcome_advantage`` of verl under ``singleton = "raw"``.

Implementation:
1. A turn's score is its episode's return, less the turn's own penalty; every token of the turn gets its advantage.
2. Lengths count what the policy said, not observations, over all turns of the episode.
3. An episode counts by its tokens however they are split into turns, hence no ``stats_over``.
4. A group of one gives 0 (``singleton``). Truncated episodes count as they ended: no critic says what would come.

Differences: the paper has one reply an episode, exactly one update a step, and neither KL nor entropy terms; the last
three belong to learner and objective. verl gives a group of one its raw score.

Watch: ``approx_kl`` is 0 but for rounding as long as training is on policy. ``groups_without_signal`` near 1 leaves
nothing to learn from. ``reply_tokens`` shows whether length drifts, as the baseline leans to long episodes.
"""

from typing import ClassVar, Literal

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import Singleton, counted, deviation, group_statistics
from manyturn.trainers.credit.stages import ADVANTAGES, StageConfig


class OpoConfig(StageConfig):
    compares_returns_only: ClassVar[bool] = True
    compares_groups: ClassVar[bool] = True
    name: Literal["opo"] = "opo"
    singleton: Singleton = "zero"
    """Advantage of a group of one: 0, or the raw score, which is what verl gives."""


@ADVANTAGES.register(OpoConfig)
def opo(batch: TurnBatch, config: OpoConfig) -> FloatK:
    """Advantage of every turn.

    >>> opo(TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0], tokens=[[2, 1], [1]]), OpoConfig())
    array([ 0.25,  0.25, -0.75])
    """
    score_K = batch.score_K()
    plain = group_statistics(score_K, batch.group_K, counted(batch, "episodes"))
    # Weighted deviations from the plain mean, not weighted scores: in a group of equal scores they are exactly 0.
    above_K = np.where(batch.scorable_K, score_K - plain.mean_K, 0.0)
    _, id_K = np.unique(batch.group_K, return_inverse=True)
    tokens_G = np.bincount(id_K, batch.tokens_K * batch.scorable_K)
    shift_G = np.bincount(id_K, batch.tokens_K * above_K) / np.maximum(tokens_G, 1)
    return deviation(score_K, plain._replace(mean_K=plain.mean_K + shift_G[id_K]), config.singleton)
