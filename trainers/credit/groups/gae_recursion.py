"""Generalised advantage estimation along a timeline, and what the estimators that use values share.

    delta_n = r_n + gamma V_next(n) - V_n        A_n = delta_n + gamma lambda A_next(n)        target_n = A_n + V_n

Source: Schulman et al., arXiv 1506.02438, equation 16.

After an episode's last step V_next is 0, also where a limit cut the episode off: every implementation that the numbers
are compared with does so, and a limit of turns is mostly part of the task, which the agent is to solve in time. Where
it is not, ``bootstrap`` takes the value of the final observation there, which nobody answered.

A penalty of a turn is taken from the advantage of its own tokens and from no target: the values predict the
environment's rewards.
"""

from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.backward_recursion import FloatP, Timeline
from manyturn.trainers.credit.batch.turn_batch import FloatK, FloatT, TurnBatch
from manyturn.trainers.credit.stages import StageConfig


class ValueConfig(StageConfig):
    """Base of the configurations of methods that compare with a learnt value."""

    uses: ClassVar[frozenset[str]] = frozenset({"reward"})
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per step, which is a reply token or a turn."""
    lam: float = Field(default=1.0, ge=0, le=1)
    """Lambda: 1 trusts the rewards to come, 0 the value of the next step."""
    bootstrap: bool = False
    """Episodes cut off by a limit go on with the value of their final observation; without it they end there."""

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"value", "final_value"} if self.bootstrap else {"value"})

    def of_returns(self) -> Self:
        return self.model_copy(update={"lam": 1.0})

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if not self.bootstrap or run.credit.truncated != "left_out":
            return None
        return (
            f"{self.name}.bootstrap says how truncated episodes go on, and credit.truncated = 'left_out' learns "
            "nothing from them: leave one of the two out"
        )


def known_values(batch: TurnBatch) -> FloatT:
    """The token column "value" (T); raises ValueError where a scorable token has none."""
    value_T = batch.token_column("value")
    wrong_T = ~np.isfinite(value_T) & batch.scorable_K[batch.turn_of_T]
    if wrong_T.any():
        token = int(wrong_T.argmax())
        raise ValueError(f"the column 'value' is {value_T[token]} at reply token {token}, whose episode is scorable")
    return value_T


def after_end(batch: TurnBatch, *, bootstrap: bool) -> FloatK:
    """Value (K) of what comes after the turn's episode: 0, but where a limit cut it off if ``bootstrap``.

    >>> columns = {"final_value": [[0.5, 0.5], [0.25], [float("nan")]]}
    >>> cut = TurnBatch.from_episodes([[0, 0], [1], [0]], [0, 0, 0], truncated=[True, False, True], columns=columns)
    >>> after_end(cut, bootstrap=True)
    array([0.5, 0.5, 0. , 0. ])
    """
    if not bootstrap:
        return np.zeros(len(batch.turn_K))
    return np.where(batch.truncated_E[batch.episode_K], np.nan_to_num(batch.column("final_value"), nan=0.0), 0.0)


def estimate(
    timeline: Timeline,
    reward_P: FloatP,
    value_P: FloatP,
    gamma: float | FloatP,
    lam: float | FloatP,
    end_P: FloatP,
) -> FloatP:
    """Advantage of each step, not whitened.

    Args:
        gamma, lam: of all steps, or of each.
        end_P: value after the last step of the step's episode.

    >>> line = Timeline.of(np.array([0, 0]), np.array([0, 1]))
    >>> estimate(line, np.array([0.0, 1.0]), np.array([0.5, 0.75]), 1.0, 0.5, np.zeros(2))
    array([0.375, 0.25 ])
    """
    next_P = timeline.following(value_P, end_P)
    return timeline.to_go(reward_P + gamma * next_P - value_P, gamma * lam)
