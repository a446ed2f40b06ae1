"""Turns of unusual entropy weigh more, or less: the advantage times 1 + a z(H).

    A'_k = A_k max(0, 1 + a z_k)        z_k = (H_k - mean H) / (std H + 1e-8)        H_k: entropy of turn k

Shapes: (turns K, advantage_K) -> advantage_K. H_k is the mean entropy of turn k's tokens, of the policy that played,
without gradient.
Source: entropy-aware advantages of Agentic Entropy-Balanced Policy Optimization, arXiv 2510.14545.

Implementation:
1. Mean and std (ddof 1) are over the batch's scorable turns with a reply.
2. a > 0 learns most where the policy hesitated, a < 0 where it was sure.
3. The weight is bounded at 0, for it must not turn the sign.

Differences: the paper weighs tokens; here turns are weighed, as advantages are of turns. The bound is ours. AEPO's clip
belongs to the objective (``entropy_balanced``).

Watch: ``entropy`` should fall more slowly than without; near 0 it ranks turns by rounding, and the weights mean
nothing.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.batch.turn_entropy import turn_entropies
from manyturn.trainers.credit.groups.group_statistics import group_statistics
from manyturn.trainers.credit.stages import MODULATIONS, StageConfig

EPS = 1e-8  # equal entropies of replies of different length differ by rounding, which must not become a weight


class EntropyWeightConfig(StageConfig):
    order: ClassVar[int | None] = 12
    name: Literal["entropy_weight"] = "entropy_weight"
    weighs_by: ClassVar[str | None] = "entropy"
    needs: ClassVar[frozenset[str]] = frozenset({"entropy"})
    a: float = Field(default=0.2, ge=-1, le=1)
    """Weight per standard deviation of entropy; below 0 confident turns weigh more."""


@MODULATIONS.register(EntropyWeightConfig)
def entropy_weight(batch: TurnBatch, advantage_K: FloatK, config: EntropyWeightConfig) -> FloatK:
    """The advantage, weighted.

    >>> entropy = {"entropy": [[[0.0], [2.0]], [[1.0]]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0], token_columns=entropy)
    >>> entropy_weight(batch, np.array([1.0, 1.0, -1.0]), EntropyWeightConfig()).round(3)
    array([ 0.8,  1.2, -1. ])
    """
    entropy_K, counted_K = turn_entropies(batch)
    _, mean_K, std_K = group_statistics(entropy_K, np.zeros(len(entropy_K), np.int64), counted_K)
    z_K = np.where(counted_K, entropy_K - mean_K, 0.0) / (std_K + EPS)
    return advantage_K * np.maximum(0.0, 1 + config.a * z_K)
