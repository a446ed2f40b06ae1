"""A plan before an action.

Sources: Learning When to Plan, arXiv 2509.03581, whose agents plan and act in turns of one model, and are best where
they plan neither always nor never. There the model decides when to plan; here ``every`` does.
"""

from typing import Annotated, Literal

from pydantic import Field

from manyturn.agents.text.inner_turn import INNER, InnerConfig, InnerRequest, InnerTurns


class PlanningConfig(InnerConfig):
    kinds = ("plan",)
    name: Literal["planning"] = "planning"
    request: Annotated[str, Field(min_length=1)] = "Before you act, plan."
    """Text that asks for a plan, below the observation."""


@INNER.register(PlanningConfig)
def planning(config: PlanningConfig) -> InnerTurns:
    """One inner turn: the plan."""
    return InnerTurns((InnerRequest("plan", config.request),), config.act)
