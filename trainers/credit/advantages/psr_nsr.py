"""Positive and negative sample reinforcement: successes are praised, failures blamed, and nothing is compared.

    learns = "negative" (NSR):  A_k = -1 in failures;  successes are left out
    learns = "positive" (PSR):  A_k = 1 in successes;  failures are left out
    learns = "both" (W-REINFORCE):  A_k = weight in successes, -1 in failures

Shapes: turns K -> advantage_K, kept_E. A turn's penalty is taken from its own advantage.
Source: The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning, arXiv 2506.01347, whose weight is 0.1;
as the authors' code (TianHongZXY/RLVR-Decomposed, ``compute_psr_nsr_outcome_advantage``).

Implementation:
1. A success is an episode with an outcome of ``goal`` or more, every other one is a failure.
2. Nothing is compared, so that a group of one and equal groups teach too: of failures only, a step with nothing but
   failures still pushes away what was tried.
3. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended.
4. Advantages do not sum to 0. At the high learning rate of a tiny model, several updates of a few episodes push away
   whatever these said, and success falls. One update a step does not: set ``learner.minibatch`` to a step's episodes.

Differences: their outcome is 1 or 0, and other values are neither success nor failure. Their discount of tokens is 1.

Watch: ``successes``, the share of scorable episodes: near 1, NSR has nothing to learn from, near 0, PSR has not.
``entropy``: PSR brings it down soonest, NSR keeps it up.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage, StageConfig


class PsrNsrConfig(StageConfig):
    compares_returns_only: ClassVar[bool] = True
    name: Literal["psr_nsr"] = "psr_nsr"
    learns: Literal["both", "negative", "positive"] = "both"
    """From which episodes is learnt: successes and failures, or one kind only."""
    weight: Annotated[float, OnlyWith("learns", "both")] = Field(default=0.1, gt=0)
    """Advantage of a success, where that of a failure is -1."""
    goal: float = 1.0
    """Outcome from which an episode is a success."""

    def named_parts(self) -> set[str]:
        return {OUTCOME}


@ADVANTAGES.register(PsrNsrConfig)
def psr_nsr(batch: TurnBatch, config: PsrNsrConfig) -> Advantage:
    """Advantage of every turn, and which episodes are learnt from.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0], [0]], groups=[0, 0, 1])
    >>> psr_nsr(batch, PsrNsrConfig()).total_K
    array([ 0.1,  0.1, -1. , -1. ])
    >>> psr_nsr(batch, PsrNsrConfig(learns="negative")).kept_E
    array([False,  True,  True])
    """
    outcomes_E = outcome_E(batch)
    known_E = ~np.isnan(outcomes_E)
    good_E = known_E & (np.nan_to_num(outcomes_E, nan=-np.inf) >= config.goal)
    credit_E = np.where(good_E, config.weight if config.learns == "both" else 1.0, -1.0)
    total_K = np.where(batch.scorable_K, credit_E[batch.episode_K] - batch.penalty_K, 0.0)
    figures = {"successes": float(good_E[known_E].mean()) if known_E.any() else 0.0}
    kept_E = {"both": None, "positive": good_E | ~known_E, "negative": ~good_E}[config.learns]
    return Advantage(total_K, {}, figures, kept_E=kept_E)
