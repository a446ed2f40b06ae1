"""A window on the conversation."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from manyturn.agents.text.context import CONTEXTS, Context, Exchange
from manyturn.envs.contract.options.registry import Named


class WindowConfig(Named):
    name: Literal["window"] = "window"
    turns: int = Field(default=2, ge=0)
    """How many past turns are shown."""


@CONTEXTS.register(WindowConfig)
class Window(Context):
    """The first observation, which states the goal, and the last few turns.

    Prompts stay short, and each turn is computed again.
    """

    def __init__(self, config: WindowConfig):
        self.turns = config.turns

    def shown(self, past: Sequence[Exchange], observation: str) -> tuple[list[Exchange], str]:
        left_out = max(0, len(past) - self.turns)
        seen = [*past[left_out:], (observation, "")]
        if left_out:
            seen[0] = (f"{past[0][0]}\n\n({left_out} turns left out)\n\n{seen[0][0]}", seen[0][1])
        return seen[:-1], seen[-1][0]
