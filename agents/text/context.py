"""Contexts: what of an episode's past the policy is shown. Each is a file in ``contexts/``."""

import abc
from collections.abc import Sequence
from typing import ClassVar, Protocol

from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.envs.contract.options.registry import Registry

Exchange = tuple[str, str]  # an observation and the reply to it


class Memory(Protocol):
    """The past of one episode, as the prompt of the next turn."""

    def prompt(self, observation: str) -> list[int]:
        """Everything that the policy sees before its next reply."""
        ...

    def add_reply(self, prompt_ids: list[int], reply_ids: Sequence[int], text: str) -> None:
        """The policy replied."""


class Context(abc.ABC):
    """Base of the contexts. One object serves all episodes: what it knows of one is in the memory that it starts.

    Attributes:
        appends: whether each prompt begins with the prompt and the reply before it.
        summarises: whether the policy writes summaries, which are inner turns.
    """

    appends: ClassVar[bool] = False
    summarises: ClassVar[bool] = False

    @property
    def texts(self) -> Sequence[str]:
        """Texts of its own that the policy reads."""
        return ()

    @abc.abstractmethod
    def shown(self, past: Sequence[Exchange], observation: str) -> tuple[list[Exchange], str]:
        """The shown part of the past, and the observation to answer, as text."""

    def start(self, template: ChatTemplate, system: str) -> Memory:
        """The memory of a new episode; this one renders what is ``shown`` again at each turn."""
        return self.rendered(template, system)

    def rendered(self, template: ChatTemplate, system: str) -> Memory:
        """A memory that renders what is ``shown`` again at each turn, whatever ``start`` makes."""
        return ShownMemory(template, system, self)

    def check(self, template: ChatTemplate) -> None:  # noqa: B027  what most contexts need is nothing
        """Raise TemplateError if the template does not do; where nothing is appended to, any does."""


class ShownMemory:
    """Memory that renders the shown past again at each turn."""

    def __init__(self, template: ChatTemplate, system: str, context: Context):
        self._template, self._system, self._context = template, system, context
        self._exchanges: list[Exchange] = []
        self._observation = ""

    def prompt(self, observation: str) -> list[int]:
        self._observation = observation
        return self._template.conversation(self._system, *self._context.shown(self._exchanges, observation))

    def add_reply(self, prompt_ids: list[int], reply_ids: Sequence[int], text: str) -> None:
        self._exchanges.append((self._observation, text))


CONTEXTS: Registry[Context] = Registry("context", "manyturn.agents.text.contexts")
