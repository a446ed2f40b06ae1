"""A turn limit that grows with the steps: short episodes first, room to explore later.

    limit(step) = min(first + by floor((step - 1) / every), last)

Source: ScalingInter-RL of AgentGym-RL, arXiv 2509.08755.

Implementation:
1. The limit binds where it is below the environment's own limit; an episode that meets it counts as truncated.
2. Held-out episodes are not bound by it.
3. A schedule that the run's steps never reach is refused.

Differences: the paper raises the limit by a fixed number each fixed number of steps, as here; its numbers depend on the
environment, and those of the recipe are ours.

Watch: ``turns`` at the limit and ``truncated`` near 1: episodes are cut off before they can succeed, begin with more;
``truncated`` near 0 from the start: the limit does not bind.
"""

from typing import Any, Self

from pydantic import Field, model_validator

from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts


class Horizon(Options):
    """A schedule of the turn limit of training episodes."""

    first: int = Field(ge=1)
    """Limit at the first step."""
    by: int = Field(ge=1)
    """What is added each time."""
    every: int = Field(ge=1)
    """Steps between two additions."""
    last: int = Field(ge=1)
    """Limit that is not passed."""

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.first >= self.last:
            raise ValueError(f"first {self.first} is not below last {self.last}: set a turn limit instead of a horizon")
        return self

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if not 0 < run.steps <= self.every:
            return None
        return (
            f"rollout.horizon.every = {self.every} is never reached in {run.steps} steps, so that the turn limit does "
            "not grow: lower it, or set rollout.max_turns instead of a horizon"
        )


def turn_limit(horizon: Horizon, step: int) -> int:
    """Most turns of an episode of this step, from 1.

    >>> [turn_limit(Horizon(first=4, by=3, every=10, last=9), step) for step in (1, 10, 11, 21, 999)]
    [4, 4, 7, 9, 9]
    """
    return min(horizon.first + horizon.by * ((step - 1) // horizon.every), horizon.last)
