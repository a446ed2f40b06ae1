"""Server-sent events of an answer, and the answer that they make together.

Source: the WHATWG's HTML standard, section 9.2. A stream that ends before its reply does is no short reply: it raises.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

_SIGNS = (b"data:", b"event:", b"id:", b"retry:", b":")
HEAD = 6
"""Bytes of a body that show whether it is a stream of events."""

_OTHER_FORM = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class BrokenStream(Exception):
    """A stream of events that makes no answer; the text says why."""


def is_stream(head: bytes) -> bool:
    """True if a body that begins so is a stream of events, which no JSON and no page looks like.

    >>> is_stream(b"data: {"), is_stream(b'{"data"')
    (True, False)
    """
    return head.lstrip().startswith(_SIGNS)


class Assembly(ABC):
    """An answer that comes in pieces.

    Args:
        longest: characters of the pieces that are held together.

    Attributes:
        done: whether the stream has said that it is over.
    """

    def __init__(self, longest: int):
        self.done = False
        self._left = longest

    @abstractmethod
    def add(self, event: dict[str, Any]) -> None:
        """Take an event. Raises what reading a mapping of another form raises."""

    @abstractmethod
    def answer(self) -> dict[str, Any] | None:
        """The answer, as one that is not streamed; None before the reply has ended."""

    def held(self, piece: str) -> str:
        """A piece that is held. Raises BrokenStream where all together are too long."""
        self._left -= len(piece)
        if self._left < 0:
            raise BrokenStream("the answer is too long")
        return piece


class EventStream:
    """Reads a stream as its bytes arrive.

    Args:
        assembly: takes the events.
        longest: bytes of the longest event.
    """

    def __init__(self, assembly: Assembly, longest: int):
        self._assembly, self._longest = assembly, longest
        self._rest = b""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> bool:
        """Take bytes; True once the answer is over. Raises BrokenStream."""
        *lines, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        if len(self._rest) > self._longest:
            raise BrokenStream(f"an event is longer than {self._longest} bytes")
        for line in lines:
            self._read(line.rstrip(b"\r"))
            if self._assembly.done:
                return True
        return False

    def end(self) -> bytes:
        """The answer, after the last byte. Raises BrokenStream."""
        if not self._assembly.done:
            for line in (self._rest.rstrip(b"\r"), b""):
                self._read(line)
        try:
            answer = self._assembly.answer()
            text = json.dumps(answer)
        except _OTHER_FORM as error:  # blocks that have no order, or nest without end
            raise BrokenStream(f"events that make no answer: {error}") from None
        if answer is None:
            raise BrokenStream("the stream ended before the reply did")
        return text.encode()

    def _read(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].decode(errors="replace").removeprefix(" "))
            self._size += len(line)
            if self._size > self._longest:
                raise BrokenStream(f"an event is longer than {self._longest} bytes")
        elif not line and self._data:
            text, self._data, self._size = "\n".join(self._data), [], 0
            for event in _events(text, self._assembly):
                _add(self._assembly, event, text)


def _events(text: str, assembly: Assembly) -> Iterator[Any]:
    """The event that a text holds; none in the word that ends a stream of chat completions."""
    if text.strip() == "[DONE]":
        assembly.done = True
        return
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        raise BrokenStream(f"an event that is no JSON: {text[:100]}") from None


def _add(assembly: Assembly, event: Any, text: str) -> None:
    try:
        assembly.add(event)
    except _OTHER_FORM:
        raise BrokenStream(f"an event of another protocol: {text[:100]}") from None
