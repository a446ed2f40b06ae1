"""Ends a process that was asked to end and does not, even if its main thread is held up.

Python runs the handler of a signal in the main thread, between two of its own instructions. An environment can keep it
from that: by a loop that swallows every exception, or by code of C. So a command has three ways to its end, each for
what the one before cannot reach:

1. The handler: the first signal asks the work to end, the second raises ``Interrupted``.
2. A thread that hears of signals through a file descriptor, which C writes to. It ends the process when nothing has
   answered for ``patience`` seconds after the first signal, or a few seconds after the second.
3. The kernel: a signal that Python has not handled yet makes the next one of its kind deadly. That needs no thread, and
   works while code of C holds Python's lock.
"""

import contextlib
import ctypes
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

PATIENCE_SECONDS = 10.0
SECOND_SECONDS = 3.0  # that a process has after the second signal
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
STATUS = 128  # of a command that a signal ended: this plus the signal's number

Handler = Callable[[int, FrameType | None], Any]


class Interrupted(KeyboardInterrupt):
    """A signal ends the command.

    Attributes:
        signal: which.
    """

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.signal = signal.Signals(number)


_armed = set[Any]()  # handlers that were installed by ``arm``


def arm(number: int, handler: Handler) -> None:
    """Install a handler that has to be armed again each time it has run: a signal that comes before then is deadly.

    Where the C library has no such handlers the usual one is installed.
    """
    signal.signal(number, handler)
    once = getattr(ctypes.CDLL(None), "sysv_signal", None)
    if once is not None:
        once.argtypes, once.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
        once(number, once(number, None))  # the first call returns Python's own handler of C, the second installs it
    _armed.add(handler)


def put_back(number: int, handler: Any) -> None:
    """Install what ``signal.getsignal`` returned earlier, as it was installed then."""
    _armed.discard(signal.getsignal(number))  # what is replaced
    if handler in _armed:
        arm(number, handler)
    else:
        signal.signal(number, handler)


class Watchdog:
    """The thread. There is one in a process: ``watchdog``."""

    def __init__(self) -> None:
        self.patience = PATIENCE_SECONDS
        self._heard: list[int] = []
        self._since = 0.0
        self._unhurried = 0
        self._pipe: tuple[int, int] | None = None
        self._before = -1

    def start(self) -> None:
        """Begin to listen; in the main thread."""
        if self._pipe is None:
            self._heard.clear()
            self._pipe = read, write = os.pipe()
            os.set_blocking(write, False)
            self._before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
            threading.Thread(target=self._watch, args=(read,), name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """The process goes on without; one that was asked to end is watched until it has ended."""
        if self._pipe is not None and not self._heard:
            signal.set_wakeup_fd(self._before)
            os.close(self._pipe[1])
            self._pipe = None

    @property
    def heard(self) -> bool:
        """True if a signal has requested the process to end."""
        return bool(self._heard)

    @property
    def is_hurried(self) -> bool:
        """True if nothing runs that ends by itself and is worth waiting for."""
        return not self._unhurried

    def answer(self) -> None:
        """The process is on its way to its end: wait again."""
        self._since = time.monotonic()

    @contextlib.contextmanager
    def unhurried(self) -> Iterator[None]:
        """For work of ours that ends by itself, however long it takes: only a second signal ends it."""
        self._unhurried += 1
        try:
            yield
        finally:
            self._unhurried -= 1
            self.answer()

    def _watch(self, read: int) -> None:
        while True:
            ready, _, _ = select.select([read], [], [], 0.1 if self._heard else None)
            if ready:
                byte = os.read(read, 64)
                if not byte:
                    os.close(read)
                    return
                self._heard += (number for number in byte if number in SIGNALS)
                if self._heard:
                    self.answer()
            if self._heard and self._is_over():
                self._end()

    def _is_over(self) -> bool:
        waited = time.monotonic() - self._since
        if len(self._heard) > 1:
            return waited > SECOND_SECONDS
        return not self._unhurried and waited > self.patience

    def _end(self) -> None:
        name = signal.Signals(self._heard[-1]).name
        text = f"manyturn: {name}: nothing answered in time, so the command was ended immediately\n"
        with contextlib.suppress(OSError):
            os.write(2, text.encode())
        os._exit(STATUS + self._heard[-1])


watchdog = Watchdog()
