"""The contract of a protocol of conversations: how a chat completion is asked for and answered in it."""

import json
import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from manyturn.envs.users.endpoint.protocols.service import EndpointService, Manner

ITEMS = "reply_items"
"""Entry of a message that holds a reply as its server gave it: reasoning, words and calls in order."""
REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks", ITEMS)
"""Entries of a message that hold reasoning."""


class EndpointProtocol(EndpointService):
    """A protocol of conversations with a model.

    Attributes:
        reply: an answer of it, for messages.
        lacks: entries of ``sampling`` that it does not have.
        unset: entries of ``sampling`` that are sent only if they were given.
        length: its entry for the longest reply; None where servers differ.
        taken: entries of a request that only this protocol has, and what sets them.
        on_reasoning: signs that a refusal is about reasoning in earlier messages.
    """

    reply: ClassVar[str]
    lacks: ClassVar[frozenset[str]] = frozenset()
    unset: ClassVar[frozenset[str]] = frozenset()
    length: ClassVar[str | None] = None
    taken: ClassVar[Mapping[str, str]] = {}
    on_reasoning: ClassVar[re.Pattern[str]]

    @abstractmethod
    def request(self, body: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
        """The body of a request, from that of a chat completion. Entries that have no meaning here stay as they are."""

    @abstractmethod
    def completion(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer as a chat completion. Raises what reading a mapping of another form raises."""

    @abstractmethod
    def sends_reasoning(self, body: Mapping[str, Any]) -> bool:
        """True if a request carries reasoning, or asks for it in a form that can be carried."""

    def read(self, raw: bytes) -> bytes:
        """The body of an answer as that of a chat completion; as it is where it is no answer of this protocol."""
        try:
            # Half a surrogate is no text that a later request could carry.
            return json.dumps(self.completion(json.loads(raw)), ensure_ascii=False).encode(errors="replace")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return raw


def usage(prompt: Any, reply: Any, cached: Any) -> dict[str, Any]:
    """Token counts of a chat completion."""
    return {"prompt_tokens": prompt, "completion_tokens": reply, "prompt_tokens_details": {"cached_tokens": cached}}


def completed(message: Mapping[str, Any], finish: str | None, tokens: Any) -> dict[str, Any]:
    """A chat completion of one message."""
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}], "usage": tokens}


def call(identity: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """A call of a tool in a message."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}


def split_system(messages: Any) -> tuple[str, list[Mapping[str, Any]]]:
    """The system text of a conversation, and its other messages."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    return "\n\n".join(system), [message for message in messages if message["role"] != "system"]
