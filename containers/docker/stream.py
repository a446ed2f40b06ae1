"""The host's end of a container's input and output."""

import contextlib
import os
import socket
import struct
import time
import weakref
from typing import Any

_MULTIPLEXED = struct.Struct(">BxxxI")
_STDOUT = 1
_CHUNK = 1 << 18
_STDERR_TAIL = 4096


class StreamEnded(ConnectionError):
    """The container's end is closed."""


class Stream:
    """An attached container without a terminal: bytes in, and two streams out in one.

    Attributes:
        stderr_tail: the last of what came on its standard error.
    """

    def __init__(self, attached: Any) -> None:
        """Take over what APIClient.attach_socket returned: a socket, or a file around one."""
        self.stderr_tail = b""
        self._attached = attached
        self._socket = getattr(attached, "_sock", attached)
        self._raw, self._out = bytearray(), bytearray()
        self._deadline = float("inf")
        _streams.add(self)

    def until(self, seconds: float) -> None:
        """From now on every call has to be done within so many seconds, or raises TimeoutError."""
        self._deadline = time.monotonic() + seconds

    def send(self, data: bytes) -> None:
        self._hurry()
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionError) as error:
            raise StreamEnded(str(error)) from None

    def read(self, count: int) -> bytes:
        """Exactly so many bytes of its standard output."""
        while len(self._out) < count:
            kind, length = _MULTIPLEXED.unpack(self._take(_MULTIPLEXED.size))
            data = self._take(length)
            if kind == _STDOUT:
                self._out += data
            else:
                self.stderr_tail = (self.stderr_tail + data)[-_STDERR_TAIL:]
        data = bytes(memoryview(self._out)[:count])
        del self._out[:count]
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self.forget()

    def forget(self) -> None:
        """Close this process's copy only."""
        for end in (self._attached, self._socket):
            with contextlib.suppress(OSError):
                end.close()

    def _take(self, count: int) -> bytes:
        while len(self._raw) < count:
            self._hurry()
            try:
                data = self._socket.recv(_CHUNK)
            except ConnectionError as error:
                raise StreamEnded(str(error)) from None
            if not data:
                raise StreamEnded("end of stream")
            self._raw += data
        data = bytes(memoryview(self._raw)[:count])
        del self._raw[:count]
        return data

    def _hurry(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(None if left == float("inf") else left)


_streams: "weakref.WeakSet[Stream]" = weakref.WeakSet()


def _after_fork() -> None:
    # A container ends when its input does: a child that kept it open would keep the container of a dead parent.
    for stream in list(_streams):
        stream.forget()


os.register_at_fork(after_in_child=_after_fork)
