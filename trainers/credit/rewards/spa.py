"""Stepwise progress attribution (SPA): the outcome is paid out turn by turn, as far as each turn contributed.

    r_k = alpha c_k + w_k                                                            form = "paper"
    completeness = "residual_to_last":  c_last += R - sum over turns of c,  so that the contributions sum to R
    wage = "shared":    w_k = beta span weight_k [action k was understood] / turns of the episode
    wage = "by_turn":   w_k = beta [action k was understood], as published
    r_k = R - mean R of the task's other episodes + beta [action k was understood, or k is the last turn]    "released"

Shapes: parts K -> two more parts K, "contribution" and "grounding". R is the episode's sum of the part "outcome", which
becomes 0; all others stay. weight: the column "contribution_weight", 1 where there is none.
Source: SPA-RL, arXiv 2505.20732, with the authors' alpha 1 and beta 0.5. Completeness, the shared wage and predictions
of states are additions; so is the weight of contributions by what they explain, see ``progress.trust``.

Implementation:
1. The trainer supplies the column "contribution": c_k, which the estimator ``progress`` predicts before the updates,
   times its weight, the share of the outcome's variance that it explains. Below ``progress.least_explained`` all c and
   the weight are 0: the last turn earns the outcome, no wage is paid, and credit is that of the advantage without SPA.
2. With ``progress.body = "own"`` the estimator is a model of its own, which begins as the policy that the warm-up left,
   learns from episodes of exploration before the first step, in all its weights, and is fixed then.
3. With ``progress.body = "policy"`` it is a head that learns along with the policy, from the same hidden states, and
   does not change them. It is 0 at first.
4. An unknown contribution (NaN) makes its episode unscorable.
5. The published loss knows sums only. What is at the end of a reply knows all turns before it, so that an estimator may
   credit a late turn with what an early one decided. ``progress.exploration.target = "states"``, the default, learns
   the outcome before each reply, and a turn contributes what it changes. Where the answer to an action shows what the
   action was worth, that is learnt from few episodes. Branches (``rollout.branching``) share states, so that each is
   learnt from several outcomes.
6. Contributions that are differences of predicted states, and complete, are rewards of a potential where gamma is 1:
   they move what a turn is compared with, and not which policy is best. A smaller gamma, such as that of ``turn-ppo``,
   discounts them and leaves a rest that depends on actions. Under GAE with lambda 1 they are a baseline and no more.
   With a smaller lambda the credit of a turn is what it changed.

As published: completeness "none", wage "by_turn", ``progress.trust = "full"`` and ``progress.exploration.target =
"sum"``. Then what the estimator does not explain is paid to no turn, and beta 0.5 over many turns is more than an
outcome of 1: where an episode can dawdle, that pays for it.

Differences: the authors' code reads logits with one layer; the paper has layers on the last hidden state, as here.
Their data script (WangHanLinHenry/SPA-RL-Agent, ``prm/rl_data_org.py``) overwrites the predictions with the
released form; of a task's only episode it takes R itself. Their PPO trainer multiplies the score of turn k of n by
n - 1 - k, which drops the last turn; left out.

Watch: ``contribution_explained`` and ``contribution_weight``, falling as the policy moves away from what the estimator
knows; at weight 0 the method is its advantage only. ``contribution_error``: how far the estimate is from the outcome.
``not_understood`` should fall by beta, and ``turns`` not rise by it.
"""

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import OnlyWith
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.episode_sums import episode_sum_K, last_K
from manyturn.trainers.credit.batch.reward_parts import part_K, with_part
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.stages import ADVANTAGES, REWARDS, StageConfig

WEIGHT = "contribution_weight"  # column: weight of the contributions, which the wage has too


class SpaConfig(StageConfig):
    adds: ClassVar[frozenset[str]] = frozenset({"contribution", "grounding"})
    empties: ClassVar[frozenset[str]] = frozenset({OUTCOME})
    order: ClassVar[int | None] = 42
    name: Literal["spa"] = "spa"
    form: Literal["paper", "released"] = "paper"
    """Predicted contributions, or what the authors' script gives every turn: the episode's outcome, centred."""
    alpha: Annotated[float, OnlyWith("form", "paper")] = Field(default=1.0, gt=0)
    """Weight of the contributions."""
    beta: float = Field(default=0.5, ge=0)
    """Wage of understood actions: of an episode, as a share of ``span``, or of a turn."""
    wage: Annotated[Literal["shared", "by_turn"], OnlyWith("form", "paper")] = "shared"
    """Wage of an episode that its understood turns share, or the same wage for each of them, as published."""
    span: Annotated[float, OnlyWith("wage", "shared")] = Field(default=1.0, gt=0)
    """Distance between the worst and the best outcome, which the wage of an episode never exceeds."""
    completeness: Annotated[Literal["none", "residual_to_last"], OnlyWith("form", "paper")] = "residual_to_last"
    """Whether the last turn gets the part of the outcome that the contributions leave over; "none" as published."""

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if self.form == "paper" and self.wage == "shared" and self.beta > 1:
            raise ValueError(
                f"beta = {self.beta:g} would pay more for understood actions than for the outcome: give 1 or less, or "
                "set wage = 'by_turn'"
            )
        return self

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"contribution"} if self.form == "paper" else ())

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({WEIGHT} if self.form == "paper" and self.wage == "shared" else ())

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.form != "paper" or self.completeness != "none" or run.progress is None or run.progress.trust == "full":
            return None
        return (
            "spa with completeness = 'none' pays only what the estimator predicts, which progress.trust = 'explained' "
            "may weigh by 0: set completeness = 'residual_to_last', or progress.trust = 'full', as published"
        )

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

    >>> columns = {"contribution": [[0.25, 0.25]]}
    >>> batch = TurnBatch.from_episodes([[0, 1]], groups=[0], understood=[[False, True]], columns=columns)
    >>> spa(batch, SpaConfig()).reward_K
    array([0.25, 1.  ])
    >>> spa(batch, SpaConfig(completeness="none", wage="by_turn")).reward_K
    array([0.25, 0.75])
    """
    outcome_K = part_K(batch, OUTCOME)
    ended_K, return_K = last_K(batch), episode_sum_K(batch, outcome_K)
    if config.form == "released":
        contribution_K, wage_K = _centred(batch, return_K), config.beta * (batch.understood_K | ended_K)
    else:
        contribution_K, wage_K = batch.column("contribution"), config.beta * batch.understood_K
        if config.completeness == "residual_to_last":
            contribution_K = contribution_K + ended_K * (return_K - episode_sum_K(batch, contribution_K))
        if config.wage == "shared":
            turns_K = np.bincount(batch.episode_K)[batch.episode_K]
            wage_K = config.span * batch.columns.get(WEIGHT, 1.0) * wage_K / turns_K
    # Not left out but set to 0, NaN excepted: an episode without an outcome stays unscorable.
    paid = replace(batch, parts={**batch.parts, OUTCOME: 0.0 * outcome_K})
    paid = with_part(paid, "spa", "contribution", config.alpha * contribution_K)
    return with_part(paid, "spa", "grounding", np.asarray(wage_K, np.float64))


def _centred(batch: TurnBatch, return_K: FloatK) -> FloatK:
    """R minus the mean R of the group's other scorable episodes; R itself where there is no other."""
    once_K = batch.scorable_K & (batch.turn_K == 0)
    _, id_K = np.unique(batch.group_K, return_inverse=True)
    groups = int(id_K.max()) + 1
    others_K = (np.bincount(id_K[once_K], minlength=groups) - 1)[id_K]
    total_K = np.bincount(id_K[once_K], return_K[once_K], groups)[id_K]
    return np.where(others_K > 0, return_K - (total_K - return_K) / np.maximum(others_K, 1), return_K)
