"""Messages on their way over a connection: those of one moment travel together, in the order in which they were put."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from manyturn.envs.hosting.handle.messages import decode, encode

MOST_BYTES = 2**20  # in one frame, unless a single message is longer
_MOST_WAITING = 16 * 2**20  # bytes for a side that does not read, before nothing more is read from it


def messages_in(frame: object) -> Iterator[dict[str, Any]]:
    """The messages of a frame. Raises ValueError for anything else."""
    if not isinstance(frame, bytes):
        raise ValueError(f"a frame is bytes, not {type(frame).__name__}")
    *lines, rest = frame.split(b"\n")
    if rest:
        raise ValueError(f"a message of {len(rest)} bytes ends in the middle")
    for line in lines:
        yield decode(line + b"\n")


class Outbox:
    """Sends what is put, as an async context manager.

    Args:
        send: sends one frame; it may wait until the other side has room.
        lost: called once, where sending failed.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[Any]], lost: Callable[[str], object]):
        self._send, self._lost = send, lost
        self._lines: list[bytes] = []
        self._waiting, self._some, self._room = 0, asyncio.Event(), asyncio.Event()
        self._room.set()

    async def __aenter__(self) -> "Outbox":
        self._work = asyncio.create_task(self._carry())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._work.cancel()
        await asyncio.wait((self._work,))

    def put(self, message: Mapping[str, Any]) -> None:
        """Send a message soon."""
        line = encode(message)
        self._lines.append(line)
        self._count(len(line))
        self._some.set()

    async def room(self) -> None:
        """Return once the other side has read enough for more answers."""
        await self._room.wait()

    def _count(self, added: int) -> None:
        self._waiting += added
        (self._room.set if self._waiting <= _MOST_WAITING else self._room.clear)()

    async def _carry(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            try:
                while await self._some.wait():
                    await self._send(self._frame())
            except Exception as error:  # whatever a library raises when its connection is gone
                self._lost(f"sending failed: {type(error).__name__}: {error}")

    def _frame(self) -> bytes:
        count = size = 0
        while count < len(self._lines) and (not count or size + len(self._lines[count]) <= MOST_BYTES):
            size += len(self._lines[count])
            count += 1
        frame, self._lines = b"".join(self._lines[:count]), self._lines[count:]
        self._count(-size)
        if not self._lines:
            self._some.clear()
        return frame
