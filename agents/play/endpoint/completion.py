"""The body of an answer: words, calls of tools, why the reply ended, and what it took."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from manyturn.agents.play.endpoint.token_counts import TokenCount
from manyturn.agents.text.chat_template import well_formed
from manyturn.envs.users.endpoint.protocols.protocol import REASONING

_BROKEN_OFF = ("error", "abort")  # how servers that failed in the middle of a reply say so, under status 200
_DEEPEST = 64  # lists and objects in each other in reasoning, which goes back to the server in later requests
_WITHOUT_WORDS = ("stop", "length", "content_filter")  # a reply that was all reasoning, or was withheld


class Unreadable(ValueError):
    """The answer is no complete completion; the text says what it is.

    Args:
        counted: what the server counted all the same.
    """

    def __init__(self, text: str, counted: TokenCount | None = None):
        super().__init__(text)
        self.counted = counted


class NoCompletion(Unreadable):
    """The answer is none of this protocol."""


class NativeCall(NamedTuple):
    """A call of a tool; ``arguments`` is the text that the model wrote, which need not be JSON."""

    id: str
    name: str
    arguments: str


class Completion(NamedTuple):
    """A reply.

    Attributes:
        text: its words; empty if there are only calls.
        calls: of the tools that the request offered, in order.
        cut: whether it was ended by the limit of its length; None if the server does not say why it ended.
        counted: what the request took that brought it.
        charged: what that and the attempts before it took.
        reasoning: entries of the message that hold reasoning, by name, which go back as they came.
        finish: why the reply ended, in the server's word.
        refused: whether the model declined, in the entry that the protocol has for it.
    """

    text: str
    calls: tuple[NativeCall, ...] = ()
    cut: bool | None = None
    counted: TokenCount | None = None
    charged: TokenCount | None = None
    reasoning: Mapping[str, Any] = MappingProxyType({})
    finish: str = ""
    refused: bool = False

    def paid(self, charged: TokenCount | None) -> Self:
        """The answer with what it and the attempts before it took."""
        return self._replace(charged=charged)

    @property
    def thought(self) -> str:
        """The reasoning as text; empty if the server gives it in no form that is text."""
        return next((well_formed(value) for value in self.reasoning.values() if isinstance(value, str)), "")


def read_completion(raw: bytes, *, offered: bool, reply: str = "a chat completion") -> Completion:
    """The completion in the body of an answer. Raises Unreadable.

    Args:
        offered: whether the request offered tools; only then may the reply call any.
        reply: what the answer was to be, for messages.
    """
    try:
        answer = json.loads(raw)
        counted = TokenCount.read(answer.get("usage"))
    except (ValueError, AttributeError, RecursionError):
        raise NoCompletion(f"not {reply}") from None
    try:
        choice = answer["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        text = _joined(message.get("content"))
        refused = text is None and bool(message.get("refusal"))
        text = message.get("refusal") if text is None else text
        calls = tuple(_call(call) for call in (message.get("tool_calls") or ()) if offered)
        reasoning = {name: message[name] for name in REASONING if message.get(name)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NoCompletion(f"not {reply}", counted) from None
    if _is_deeper(reasoning, _DEEPEST):
        raise Unreadable(f"reasoning of more than {_DEEPEST} lists and objects in each other", counted)
    if answer.get("error") or finish in _BROKEN_OFF:
        raise Unreadable("a completion that broke off", counted)
    # A model that says nothing has failed at its turn. One whose call comes unasked was not read by its server.
    unread = finish == "stop" and bool(message.get("tool_calls"))
    if text is None and (calls or (finish in _WITHOUT_WORDS and not unread)):
        text = ""
    if not isinstance(text, str):
        raise Unreadable("a completion without text", counted)
    cut = finish == "length" if isinstance(finish, str) else None
    finish = finish if isinstance(finish, str) else ""
    return Completion(well_formed(text), calls, cut, counted, counted, reasoning, finish, refused)


def _joined(content: Any) -> Any:
    """Content that comes as parts of text, as one text; anything else as it is."""
    if not isinstance(content, list) or not content:
        return content
    if all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        texts = [part.get("text") for part in content]
        return "".join(texts) if all(isinstance(text, str) for text in texts) else content
    return content


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


def _call(call: Mapping[str, Any]) -> NativeCall:
    function, identity = call["function"], call.get("id")
    name, arguments = function["name"], function.get("arguments")
    if not isinstance(name, str):
        raise ValueError("a call without a name")
    if not isinstance(arguments, str):  # some servers send the object itself
        arguments = json.dumps({} if arguments is None else arguments)
    return NativeCall(identity if isinstance(identity, str) else "", well_formed(name), well_formed(arguments or "{}"))
