"""Arbitrary-entropy policy optimisation: GRPO, and the good ones of tempered episodes as what REINFORCE learns.

    untempered turns: A_k = (s_k - mean_u s) / (std_u s + eps)      u: the untempered episodes of k's task, ddof 1
    tempered turns:   A_k = 1 if (s_k - mean_t s) / (std_t s + eps) > threshold, else the episode is left out
                                                                    t: the tempered episodes of k's task
    drawn at a lower temperature: of those with A = 1 every second one is left out too

Shapes: turns K -> advantage_K, kept_E.
Source: Arbitrary Entropy Policy Optimization, arXiv 2510.08141, with the authors' code (597358816/AEPO,
``verl/trainer/ray_trainer.py``). Another paper has the same acronym: agentic entropy-balanced policy optimisation,
arXiv 2510.14545, which is the objective ``entropy_balanced`` here.

Implementation:
1. Which turns are tempered is the column "tempered"; ``rollout.tempering`` draws them. What was drawn hotter than the
   policy and learnt from at its own temperature flattens the policy, what was drawn colder sharpens it. Only episodes
   that did well do so, so that entropy is moved along with success and not against it.
2. A group of one, or without spread, gives 0 among untempered episodes, and leaves all tempered ones out.
3. Every second one is by the order of the batch, over all tasks: as many are learnt from above the target as theirs
   takes, which is half.
4. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended.

Differences: their tempered episodes take the place of others, up to a number (60 of 512), in the order of the batch;
ours are members of each group, so that their share is ``members`` of ``group`` at most. Their loss is the clipped one
for both, as here.

Watch: ``tempered_learnt``, the share of tempered episodes that are learnt from: 0 moves no entropy, as where all fail.
``drawn_entropy`` next to ``rollout.tempering.target``.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import EPS, deviation, group_statistics, standardised
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage, StageConfig


class ArbitraryEntropyConfig(StageConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"tempered"})
    compares_groups: ClassVar[bool] = True
    compares_returns_only: ClassVar[bool] = True
    name: Literal["arbitrary_entropy"] = "arbitrary_entropy"
    threshold: float = Field(default=0.05, ge=0)
    """Comparison above which a tempered episode is learnt from."""
    std: bool = True
    """Divide comparisons by their standard deviations."""
    eps: Annotated[float, OnlyWith("std")] = Field(default=EPS, ge=0)
    """Added to the standard deviations."""


@ADVANTAGES.register(ArbitraryEntropyConfig)
def arbitrary_entropy(batch: TurnBatch, config: ArbitraryEntropyConfig) -> Advantage:
    """Advantage of every turn, and which episodes are learnt from.

    >>> tempered = {"tempered": [[0], [0], [0.2], [0.2]]}
    >>> batch = TurnBatch.from_episodes([[1], [0], [1], [0]], groups=[0] * 4, columns=tempered)
    >>> advantage = arbitrary_entropy(batch, ArbitraryEntropyConfig(std=False))
    >>> advantage.total_K, advantage.kept_E
    (array([ 0.5, -0.5,  1. ,  0. ]), array([ True,  True,  True, False]))
    """
    tempered_K = batch.column("tempered")
    hot_K = tempered_K != 0
    compared_K = _compared(batch, hot_K, config)
    good_K = hot_K & batch.scorable_K & (compared_K > config.threshold)
    good_E = np.bincount(batch.episode_K, good_K & (batch.turn_K == 0), len(batch.truncated_E)) > 0
    cold_E = np.bincount(batch.episode_K, tempered_K, len(batch.truncated_E)) < 0
    ranks_E = np.cumsum(good_E & cold_E)
    good_E &= ~cold_E | (ranks_E % 2 == 1)
    hot_E = np.bincount(batch.episode_K, hot_K, len(batch.truncated_E)) > 0
    learnt = float(good_E[hot_E].mean()) if hot_E.any() else 0.0
    total_K = np.where(hot_K, good_E[batch.episode_K] * 1.0, compared_K)
    return Advantage(total_K, {}, {"tempered_learnt": learnt}, kept_E=good_E | ~hot_E)


def _compared(batch: TurnBatch, hot_K: BoolK, config: ArbitraryEntropyConfig) -> FloatK:
    """Comparison (K) of each turn's score with the returns of its task's episodes that are tempered as it is."""
    kind_K = 2 * batch.group_K + hot_K
    returns_K = batch.episode_return_E()[batch.episode_K]
    statistics = group_statistics(returns_K, kind_K, batch.scorable_K & (batch.turn_K == 0))
    if config.std:
        return standardised(batch.score_K(), statistics, "zero", config.eps)
    return deviation(batch.score_K(), statistics, "zero")
