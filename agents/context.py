"""Contexts: what of an episode's past the policy is shown."""

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import Field

from manyturn.agents.template import ChatTemplate
from manyturn.envs.contract.options import Options

Exchange = tuple[str, str]  # an observation and the reply to it


class Memory(Protocol):
    """The past of one episode, as the prompt of the next turn."""

    def prompt(self, observation: str) -> list[int]:
        """Everything that the policy sees before its next reply."""
        ...

    def said(self, prompt_ids: list[int], reply_ids: Sequence[int], text: str) -> None:
        """The policy replied."""


class WholeMemory:
    """Every turn, appended: a turn's prompt and reply are the beginning of the next turn's prompt."""

    def __init__(self, template: ChatTemplate, system: str):
        self._template, self._system = template, system
        self._ids: list[int] = []
        self._ended = True

    def prompt(self, observation: str) -> list[int]:
        if not self._ids:
            return self._template.opening(self._system, observation)
        return self._ids + self._template.bridge(observation, self._ended)

    def said(self, prompt_ids: list[int], reply_ids: Sequence[int], text: str) -> None:
        self._ids = [*prompt_ids, *reply_ids]
        self._ended = bool(reply_ids) and reply_ids[-1] in self._template.end_ids


class WindowMemory:
    """What the window shows, rendered anew each time."""

    def __init__(self, template: ChatTemplate, system: str, window: "Window"):
        self._template, self._system, self._window = template, system, window
        self._exchanges: list[Exchange] = []
        self._observation = ""

    def prompt(self, observation: str) -> list[int]:
        self._observation = observation
        return self._template.conversation(self._system, *self._window.shown(self._exchanges, observation))

    def said(self, prompt_ids: list[int], reply_ids: Sequence[int], text: str) -> None:
        self._exchanges.append((self._observation, text))


class WholeConversation(Options):
    """The whole conversation: each token of an episode is computed once."""

    name: Literal["whole"] = "whole"

    def shown(self, past: Sequence[Exchange], observation: str) -> tuple[list[Exchange], str]:
        """What is shown of the past, and the observation to answer, as text."""
        return list(past), observation

    def start(self, template: ChatTemplate, system: str) -> Memory:
        return WholeMemory(template, system)

    def check(self, template: ChatTemplate) -> None:
        template.check()


class Window(Options):
    """The first observation, which states the goal, and the last few turns.

    Prompts stay short, and each turn is computed anew.
    """

    name: Literal["window"] = "window"
    turns: int = Field(default=2, ge=0)
    """How many past turns are shown."""

    def shown(self, past: Sequence[Exchange], observation: str) -> tuple[list[Exchange], str]:
        """What is shown of the past, and the observation to answer, as text."""
        left_out = max(0, len(past) - self.turns)
        seen = [*past[left_out:], (observation, "")]
        if left_out:
            seen[0] = (f"{past[0][0]}\n\n({left_out} turns left out)\n\n{seen[0][0]}", seen[0][1])
        return seen[:-1], seen[-1][0]

    def start(self, template: ChatTemplate, system: str) -> Memory:
        return WindowMemory(template, system, self)

    def check(self, template: ChatTemplate) -> None:
        """Any template will do: nothing is appended to."""


Context = Annotated[WholeConversation | Window, Field(discriminator="name")]
