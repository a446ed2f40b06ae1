"""Penalty for replies that the environment could not understand, where GiGPO's authors put it.

    penalty_k += coef * [reply k invalid]
    score_k = R_episode - penalty_k        G_k = sum_j gamma^(j-k) r_j - penalty_k

Source: GiGPO, arXiv 2505.10978; the placement is the released code's (langfengQ/verl-agent,
``apply_invalid_action_penalty``).

Implementation:
1. Rewards stay as they are; what an advantage compares is the score, less the penalty.
2. It comes after discounting, hence it costs the offending turn alone. Folded into the environment's reward it would
   also be charged to every earlier turn.
3. Invalid is what the format or the environment could not understand, not what had no effect.

Differences: the paper's formulas have no penalty, the code has 0.1, and so has this. Left out: a penalty that grows
with repetition, which belongs to the environment's own reward.

Watch: ``invalid`` falls within a few steps; if it stays, coef is small next to the spread of returns.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.stages import REWARDS, StageConfig
from manyturn.trainers.credit.turn_batch import TurnBatch


class InvalidPenaltyConfig(StageConfig):
    name: Literal["invalid_penalty"] = "invalid_penalty"
    coef: float = Field(default=0.1, gt=0)
    """What an invalid reply costs."""


@REWARDS.register(InvalidPenaltyConfig)
def invalid_penalty(batch: TurnBatch, config: InvalidPenaltyConfig) -> TurnBatch:
    """Add the penalty to ``penalty_K``; rewards stay as they are.

    >>> batch = TurnBatch.from_episodes([[0, 1]], groups=[0], valid=[[False, True]])
    >>> punished = invalid_penalty(batch, InvalidPenaltyConfig())
    >>> punished.score_K(), punished.turn_return_K(gamma=1.0)
    (array([0.9, 1. ]), array([0.9, 1. ]))
    """
    return replace(batch, penalty_K=batch.penalty_K + np.where(batch.valid_K, 0.0, config.coef))
