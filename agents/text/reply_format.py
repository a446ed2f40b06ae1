"""Reply formats: how a reply's text says which action is meant. Each is a file in ``formats/``."""

import abc
from typing import ClassVar, NamedTuple

from manyturn.agents.text.reasoning import split_reasoning
from manyturn.envs.contract.options.registry import Registry


class Parsed(NamedTuple):
    """The action that a reply means; ``format_valid`` is False if the reply broke the format."""

    action: str
    format_valid: bool


class ReplyReading(NamedTuple):
    """A reply that was read.

    Attributes:
        reasoning: what came before the action; no part of it is an action.
        action: the action that the rest means; empty if there is no rest.
        format_valid: False if the rest broke the format.
    """

    reasoning: str
    action: str
    format_valid: bool


class ReplyFormat(abc.ABC):
    """Base of the formats. One object serves all episodes: it keeps nothing of any.

    Attributes:
        thinks: a reply holds reasoning next to its action.
        by_request: actions are parts of requests and answers, next to the text; only an endpoint has those.
    """

    thinks: bool = False
    by_request: ClassVar[bool] = False

    @abc.abstractmethod
    def hint(self) -> str:
        """The line about the format in the agent's instructions."""

    def read(self, reply: str, *, opened: bool = False) -> ReplyReading:
        """Take a reply's reasoning off, and read the action from the rest.

        Args:
            opened: the prompt ends inside of reasoning, which its template has opened.
        """
        reasoning, text = split_reasoning(reply, opened=opened)
        if reasoning and not text.strip():
            return ReplyReading(reasoning, "", format_valid=False)
        return ReplyReading(reasoning, *self.parse(text))

    @abc.abstractmethod
    def parse(self, text: str) -> Parsed:
        """The action that a text without reasoning means. Every text means something, if only itself."""

    def reply_tokens(self, *, tools: bool) -> int:
        """Tokens that a reply needs, its end included, with a tokenizer for any text: the limit where nobody gives one.

        Args:
            tools: whether actions are calls of tools, which are longer than commands.
        """
        return 384 if tools else 64

    @abc.abstractmethod
    def render(self, action: str) -> str:
        """A reply that means an action: what a demonstration says."""


FORMATS: Registry[ReplyFormat] = Registry("reply format", "manyturn.agents.text.formats")
