"""A draft of the action and a critique of it before the action itself.

Source: Language Models can Solve Computer Tasks, arXiv 2303.17491 (RCI: a model criticises its output and improves
it). There prompts alone do it; here the draft and the critique are also learnt from.
"""

from typing import Annotated, Literal

from pydantic import Field

from manyturn.agents.text.inner_turn import INNER, InnerConfig, InnerRequest, InnerTurns


class SelfCritiqueConfig(InnerConfig):
    kinds = ("draft", "critique")
    name: Literal["self_critique"] = "self_critique"
    draft: Annotated[str, Field(min_length=1)] = "Before you act, draft an action."
    """Text that asks for a draft, below the observation."""
    critique: Annotated[str, Field(min_length=1)] = "Criticise it."
    """Text that asks for the critique of the draft."""


@INNER.register(SelfCritiqueConfig)
def self_critique(config: SelfCritiqueConfig) -> InnerTurns:
    """Two inner turns: the draft and the critique."""
    return InnerTurns((InnerRequest("draft", config.draft), InnerRequest("critique", config.critique)), config.act)
