"""Stepwise progress attribution (SPA): the outcome is paid out turn by turn, as far as each turn contributed.

    r_k = alpha c_k + beta [reply k was understood]                                            form = "paper"
    completeness = "residual_to_last":  c_last += R - sum over turns of c,  so that the contributions sum to R
    r_k = R - mean R of the task's other episodes + beta [reply k was understood, or k is the last turn]     "released"

Shapes: parts K -> two more parts K, "contribution" and "grounding". R is the episode's sum of the part "outcome", which
becomes 0; all others stay. The trainer supplies the column "contribution": c_k, what a progress estimator predicts.

Source: SPA-RL, arXiv 2505.20732, with the authors' alpha 1 and beta 0.5; completeness is an addition. The released form
is the authors' data script (WangHanLinHenry/SPA-RL-Agent, ``prm/rl_data_org.py``), which overwrites the predictions. Of
a task's only episode it takes R itself.

Left out: the factor n - 1 - k on the score of turn k of n in the authors' PPO trainer, which drops the last turn.
An unknown contribution (NaN) makes its episode unscorable.
"""

from dataclasses import replace
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.turn import OUTCOME
from manyturn.trainers.rewards.episodes import episode_sum_K, last_K
from manyturn.trainers.rewards.parts import part_K, with_part
from manyturn.trainers.stages import REWARDS, StageConfig
from manyturn.trainers.turn_batch import FloatK, TurnBatch


class SpaConfig(StageConfig):
    name: Literal["spa"] = "spa"
    form: Literal["paper", "released"] = "paper"
    """Predicted contributions, or what the authors' script gives every turn: the episode's outcome, centred."""
    alpha: float = Field(default=1.0, gt=0)
    """Weight of the contributions."""
    beta: float = Field(default=0.5, ge=0)
    """What a reply that was understood earns."""
    completeness: Literal["none", "residual_to_last"] = "none"
    """Whether the last turn gets the part of the outcome that the contributions leave over."""

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"contribution"} if self.form == "paper" else ())

    @model_validator(mode="after")
    def _effective(self) -> Self:
        if self.form == "released" and (self.alpha != 1.0 or self.completeness != "none"):
            raise ValueError("alpha and completeness have no effect in the released form")
        return self


@REWARDS.register(SpaConfig)
def spa(batch: TurnBatch, config: SpaConfig) -> TurnBatch:
    """Pay the outcome out.

    >>> columns = {"contribution": [[0.25, 0.5]]}
    >>> batch = TurnBatch.from_episodes([[0, 1]], groups=[0], valid=[[False, True]], columns=columns)
    >>> spa(batch, SpaConfig()).reward_K
    array([0.25, 1.  ])
    >>> spa(batch, SpaConfig(completeness="residual_to_last")).parts["contribution"]
    array([0.25, 0.75])
    """
    outcome_K = part_K(batch, OUTCOME)
    ended_K, return_K = last_K(batch), episode_sum_K(batch, outcome_K)
    if config.form == "released":
        contribution_K, grounded_K = _centred(batch, return_K), batch.valid_K | ended_K
    else:
        contribution_K, grounded_K = batch.column("contribution"), batch.valid_K
    if config.completeness == "residual_to_last":
        contribution_K = contribution_K + ended_K * (return_K - episode_sum_K(batch, contribution_K))
    # Not left out but set to 0, NaN excepted: an episode without an outcome stays unscorable.
    paid = replace(batch, parts={**batch.parts, OUTCOME: 0.0 * outcome_K})
    paid = with_part(paid, "spa", "contribution", config.alpha * contribution_K)
    return with_part(paid, "spa", "grounding", np.where(grounded_K, config.beta, 0.0))


def _centred(batch: TurnBatch, return_K: FloatK) -> FloatK:
    """R minus the mean R of the group's other scorable episodes; R itself where there is no other."""
    once_K = batch.scorable_K & (batch.turn_K == 0)
    _, id_K = np.unique(batch.group_K, return_inverse=True)
    groups = int(id_K.max()) + 1
    others_K = (np.bincount(id_K[once_K], minlength=groups) - 1)[id_K]
    total_K = np.bincount(id_K[once_K], return_K[once_K], groups)[id_K]
    return np.where(others_K > 0, return_K - (total_K - return_K) / np.maximum(others_K, 1), return_K)
