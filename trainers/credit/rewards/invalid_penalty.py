"""Penalty for replies whose format is broken, where GiGPO's authors put it; or for those that were not understood.

    penalty_k += coef * [flag of turn k is false]                          flag: format_valid, or understood
    score_k = R_episode - penalty_k        G_k = sum_j gamma^(j-k) r_j - penalty_k

Source: GiGPO, arXiv 2505.10978; coef, placement and what is charged are the released code's (langfengQ/verl-agent:
``verl/trainer/ppo/ray_trainer.py``, ``apply_invalid_action_penalty``; ``is_action_valid`` is set where tags are read,
``agent_system/environments/env_package/alfworld/projection.py``, which never asks the environment).

Implementation:
1. Rewards stay as they are; what an advantage compares is the score, less the penalty.
2. It comes after discounting, hence it costs the offending turn alone. Folded into the environment's reward it would
   also be charged to every earlier turn.
3. By default it charges replies in which no action was found. "Nothing happens" is an answer to an action: it is free.
4. With ``flag = "understood"`` it charges that answer, and the broken format only if its text meant nothing either.

Differences: the paper's formulas have no penalty, the code has 0.1, and so has this. A reply in free text breaks no
format unless it is empty. Left out: a penalty that grows with repetition; it belongs to the environment's own reward.

Their Household also asks for <think> tags and refuses Chinese characters.

Watch: ``penalised_turns`` is what is charged, and falls within a few steps; if it stays, coef is small next to the
spread of returns. ``penalty_alone``: groups without signal that the penalty tells apart. There a method that divides by
the spread gives turns as much credit for coef as it gives elsewhere for an outcome.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import REWARDS, StageConfig


class InvalidPenaltyConfig(StageConfig):
    order: ClassVar[int | None] = 10
    name: Literal["invalid_penalty"] = "invalid_penalty"
    coef: float = Field(default=0.1, gt=0)
    """What a turn costs at which the flag is false."""
    flag: Literal["format_valid", "understood"] = "format_valid"
    """What is charged: replies whose format is broken, or actions that the environment did not understand."""


@REWARDS.register(InvalidPenaltyConfig)
def invalid_penalty(batch: TurnBatch, config: InvalidPenaltyConfig) -> TurnBatch:
    """Add the penalty to ``penalty_K``; rewards stay as they are.

    >>> batch = TurnBatch.from_episodes([[0, 1]], groups=[0], format_valid=[[False, True]])
    >>> punished = invalid_penalty(batch, InvalidPenaltyConfig())
    >>> punished.score_K(), punished.turn_return_K(gamma=1.0)
    (array([0.9, 1. ]), array([0.9, 1. ]))
    """
    spared_K = batch.format_valid_K if config.flag == "format_valid" else batch.understood_K
    return replace(batch, penalty_K=batch.penalty_K + np.where(spared_K, 0.0, config.coef))
