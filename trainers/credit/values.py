"""Generalised advantage estimation along a timeline, and what the estimators that use values share.

    delta_n = r_n + gamma V_next(n) - V_n        A_n = delta_n + gamma lambda A_next(n)        target_n = A_n + V_n

Source: Schulman et al., arXiv 1506.02438, equation 16.

After an episode's last step V_next is 0, also where a limit cut the episode off: every implementation that the numbers
are compared with does so, and a limit of turns is mostly part of the task, which the agent is to solve in time. Where
it is not, ``bootstrap`` takes the last value there: the state after the last step is then worth what it was before.

A penalty of a turn is taken from the advantage of its own tokens and from no target: the values predict the
environment's rewards.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.credit.timeline import FloatP, Timeline
from manyturn.trainers.credit.turn_batch import BoolK, FloatT, TurnBatch


class ValueConfig(StageConfig):
    """Base of the configurations of methods that compare with a learnt value."""

    needs: ClassVar[frozenset[str]] = frozenset({"value"})
    uses: ClassVar[frozenset[str]] = frozenset({"reward"})
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per step, which is a reply token or a turn."""
    lam: float = Field(default=1.0, ge=0, le=1)
    """Lambda: 1 trusts the rewards to come, 0 the value of the next step."""
    bootstrap: bool = False
    """Episodes cut off by a limit go on with their last value; without it they end there."""


def known_values(batch: TurnBatch) -> FloatT:
    """The token column "value" (T); raises ValueError where a scorable token has none."""
    value_T = batch.token_column("value")
    wrong_T = ~np.isfinite(value_T) & batch.scorable_K[batch.turn_of_T]
    if wrong_T.any():
        token = int(wrong_T.argmax())
        raise ValueError(f"the column 'value' is {value_T[token]} at reply token {token}, whose episode is scorable")
    return value_T


def estimate(
    timeline: Timeline, reward_P: FloatP, value_P: FloatP, gamma: float, lam: float, going_on_P: BoolK
) -> FloatP:
    """Advantage of each step, not whitened.

    Args:
        going_on_P: where the episode goes on after its last step, with the value of that step.

    >>> line = Timeline.of(np.array([0, 0]), np.array([0, 1]))
    >>> estimate(line, np.array([0.0, 1.0]), np.array([0.5, 0.75]), 1.0, 0.5, np.full(2, False))
    array([0.375, 0.25 ])
    """
    next_P = timeline.following(value_P, np.where(going_on_P, value_P, 0.0))
    return timeline.to_go(reward_P + gamma * next_P - value_P, gamma * lam)
