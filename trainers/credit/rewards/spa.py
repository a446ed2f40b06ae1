"""Stepwise progress attribution (SPA): the outcome is paid out turn by turn, as far as each turn contributed.

    r_k = alpha c_k + beta [action k was understood]                                           form = "paper"
    completeness = "residual_to_last":  c_last += R - sum over turns of c,  so that the contributions sum to R
    r_k = R - mean R of the task's other episodes + beta [action k was understood, or k is the last turn]    "released"
    estimator: c_k from the hidden state at the end of reply k, by (sum over turns of c - R)^2, a mean over episodes

Shapes: parts K -> two more parts K, "contribution" and "grounding". R is the episode's sum of the part "outcome", which
becomes 0; all others stay.
Source: SPA-RL, arXiv 2505.20732, with the authors' alpha 1 and beta 0.5; completeness is an addition.

Implementation:
1. The trainer supplies the column "contribution": c_k, which the estimator ``progress`` predicts before the updates.
2. With ``progress.body = "own"`` it is as published: a model of its own, which begins as the policy that the warm-up
   left, learns from episodes of exploration before the first step, in all its weights, and is fixed then.
3. With ``progress.body = "policy"`` it is a head that learns along with the policy, from the same hidden states, and
   does not change them. It is 0 at first: with "residual_to_last" the last turn then has earned the outcome.
4. An unknown contribution (NaN) makes its episode unscorable.
5. The loss knows sums alone. What is at the end of a reply knows all turns before it, so that an estimator may credit a
   late turn with what an early one decided: how the sum falls on turns is for the estimator to choose.

Differences: the authors' code reads logits with one layer; the paper has layers on the last hidden state, as here.
Their data script (WangHanLinHenry/SPA-RL-Agent, ``prm/rl_data_org.py``) overwrites the predictions with the
released form; of a task's only episode it takes R itself. Their PPO trainer multiplies the score of turn k of n by
n - 1 - k, which drops the last turn; left out. beta 0.5 over many turns is more than an outcome of 1: where an episode
can dawdle, that pays for it.

Watch: ``progress_loss`` against the variance of the outcome, success (1 - success): equal, the estimator knows nothing;
well below, turns are distinguished; rising after the first steps, a fixed one no longer knows the policy's episodes.
``contribution_error``: how far the contributions are from adding up before the last turn gets any rest.
``not_understood`` should fall by beta, and ``turns`` not rise by it.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.episode_sums import episode_sum_K, last_K
from manyturn.trainers.credit.batch.reward_parts import part_K, with_part
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.stages import ADVANTAGES, REWARDS, StageConfig


class SpaConfig(StageConfig):
    adds: ClassVar[frozenset[str]] = frozenset({"contribution", "grounding"})
    empties: ClassVar[frozenset[str]] = frozenset({OUTCOME})
    name: Literal["spa"] = "spa"
    form: Literal["paper", "released"] = "paper"
    """Predicted contributions, or what the authors' script gives every turn: the episode's outcome, centred."""
    alpha: Annotated[float, OnlyWith("form", "paper")] = Field(default=1.0, gt=0)
    """Weight of the contributions."""
    beta: float = Field(default=0.5, ge=0)
    """What an action that the environment understood earns."""
    completeness: Annotated[Literal["none", "residual_to_last"], OnlyWith("form", "paper")] = "none"
    """Whether the last turn gets the part of the outcome that the contributions leave over."""

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"contribution"} if self.form == "paper" else ())

    def refuse_advantage(self, advantage: StageConfig) -> str | None:
        if self.form != "paper" or not advantage.compares_returns_only:
            return None
        others = ADVANTAGES.names(lambda kind: kind.compares_returns_only is not True)
        loses = "the outcome is lost" if self.completeness == "none" else "contributions change nothing"
        return (
            f"{advantage.name} compares full returns, where {self.name} pays turns, so that {loses}: take an advantage "
            f"that separates turns ({', '.join(others)})"
        )


@REWARDS.register(SpaConfig)
def spa(batch: TurnBatch, config: SpaConfig) -> TurnBatch:
    """Pay the outcome out.

    >>> columns = {"contribution": [[0.25, 0.5]]}
    >>> batch = TurnBatch.from_episodes([[0, 1]], groups=[0], understood=[[False, True]], columns=columns)
    >>> spa(batch, SpaConfig()).reward_K
    array([0.25, 1.  ])
    >>> spa(batch, SpaConfig(completeness="residual_to_last")).parts["contribution"]
    array([0.25, 0.75])
    """
    outcome_K = part_K(batch, OUTCOME)
    ended_K, return_K = last_K(batch), episode_sum_K(batch, outcome_K)
    if config.form == "released":
        contribution_K, grounded_K = _centred(batch, return_K), batch.understood_K | ended_K
    else:
        contribution_K, grounded_K = batch.column("contribution"), batch.understood_K
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
