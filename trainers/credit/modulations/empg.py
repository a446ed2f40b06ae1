"""EMPG: confident turns weigh more, and leading to a confident turn earns a bonus.

    A'_k = A_k g(h_k) + zeta f(h_(k+1)),  then minus the mean of A' over turns
    g(h) = exp(-k h) / mean exp(-k h)        f(h) = exp(-k_f h)        h = (H - min H) / (max H - min H)

Shapes: (turns K, advantage_K) -> advantage_K. H_k is the mean entropy of turn k's tokens, of the policy that played,
without gradient.
Source: Entropy-Modulated Policy Gradients, arXiv 2509.09265. Numbers agree with a re-implementation by others
(WillDreamer/ARLArena, ``compute_EMPG_advantage``), which defaults to the values here.

Implementation:
1. Minimum, maximum and means are over the batch's scorable turns with a reply.
2. An episode's last turn gets no bonus; leading to an empty reply earns nothing, and that reply keeps its advantage.
3. The last step moves the advantage of all turns, of groups without signal too.
4. One turn of unusually high entropy sets the scale of h, and all others count as confident.

Differences: the authors' code is not public, and their k, k_f and zeta are tuned for each task. The re-implementation
reads the turn's number from the prompt's text; here it is known.

Watch: ``entropy`` falling to 0 early: confident turns feed themselves, lower k and zeta. ``advantage_std`` above 0
where ``groups_without_signal`` is 1: what is learnt then is the bonus alone.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.batch.turn_entropy import turn_entropies
from manyturn.trainers.credit.stages import MODULATIONS, StageConfig

EPS = 1e-8


class EmpgConfig(StageConfig):
    order: ClassVar[int | None] = 20
    name: Literal["empg"] = "empg"
    weighs_by: ClassVar[str | None] = "entropy"
    needs: ClassVar[frozenset[str]] = frozenset({"entropy"})
    k: float = Field(default=1.0, ge=0)
    """How strongly a turn's own entropy takes from its weight."""
    k_f: float = Field(default=1.0, ge=0)
    """How strongly the next turn's entropy takes from the bonus."""
    zeta: float = Field(default=0.05, ge=0)
    """Bonus for leading to a turn of the least entropy."""


@MODULATIONS.register(EmpgConfig)
def empg(batch: TurnBatch, advantage_K: FloatK, config: EmpgConfig) -> FloatK:
    """The advantage with confident turns in front.

    >>> entropy = {"entropy": [[[0.0], [1.0]], [[1.0]]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0], token_columns=entropy)
    >>> empg(batch, np.array([1.0, 1.0, -1.0]), EmpgConfig(zeta=0.0)).round(3)
    array([ 1.152,  0.06 , -1.212])
    """
    entropy_K, counted_K = turn_entropies(batch)
    if not counted_K.any():
        return advantage_K
    low, high = entropy_K[counted_K].min(), entropy_K[counted_K].max()
    relative_K = np.where(counted_K, entropy_K - low, 0.0) / (high - low + EPS)
    weight_K, clarity_K = np.exp(-config.k * relative_K), np.exp(-config.k_f * relative_K)
    weight_K = weight_K / (weight_K[counted_K].mean() + EPS)
    line = Timeline.of(batch.episode_K, batch.turn_K)
    bonus_K = config.zeta * line.following(np.where(counted_K, clarity_K, 0.0), np.zeros(len(clarity_K)))
    modulated_K = advantage_K * weight_K + bonus_K
    return np.where(counted_K, modulated_K - modulated_K[counted_K].mean(), advantage_K)
