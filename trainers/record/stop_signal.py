"""Stopping a run from outside: the first signal lets the step finish and be saved, the second ends it immediately."""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Self, TypeVar

from manyturn.envs.hosting.local.shutdown_watchdog import (
    PATIENCE_SECONDS,
    SIGNALS,
    Interrupted,
    arm,
    put_back,
    watchdog,
)

Result = TypeVar("Result")

DRAIN_SECONDS = 30.0


class Stopped(Exception):
    """The run was asked to stop, and did.

    Attributes:
        signal: what asked.
    """

    def __init__(self, signal: signal.Signals, text: str):
        super().__init__(text)
        self.signal = signal

    @property
    def exit_code(self) -> int:
        """0 where whoever manages the machine asked, 130 where a person did."""
        return 130 if self.signal is signal.SIGINT else 0


class Stopping:
    """Listens for SIGTERM, SIGINT and SIGHUP, as a context manager in a running event loop.

    Outside the main thread signals cannot be heard; then nothing stops the run. A signal that is ignored, as under
    nohup, stays so. The second one raises ``Interrupted``, while the weights are being updated too.

    Args:
        drain: seconds that unfinished episodes have to end.

    Attributes:
        stop_signal: the signal that came, if one did.
    """

    def __init__(self, drain: float = DRAIN_SECONDS):
        self.stop_signal: signal.Signals | None = None
        self._drain = drain
        self._bell = asyncio.Event()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for name in SIGNALS:
            before = signal.getsignal(name)
            if before is signal.SIG_IGN:
                continue
            try:
                # Not the event loop's own handlers, which are not heard while a step is being learnt from.
                arm(name, self._hear)
            except ValueError:
                break
            self._before[name] = before
        watchdog.patience = self._drain
        return self

    def __exit__(self, *exception: object) -> None:
        watchdog.patience = PATIENCE_SECONDS
        for name, handler in self._before.items():
            put_back(name, handler)

    def check(self) -> None:
        """Raise Stopped once a stop was asked for: for work of which nothing would be kept."""
        if self.stop_signal:
            raise Stopped(self.stop_signal, f"{self.stop_signal.name}: what was not finished is left")

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``; once a stop is asked for, it has ``drain`` seconds before it is cancelled.

        Raises:
            Stopped: it did not end in time, or a stop had been asked for before it began.
        """
        if self.stop_signal:
            work.close()
            raise Stopped(self.stop_signal, f"{self.stop_signal.name}: what was begun has been finished")
        task, bell = asyncio.ensure_future(work), asyncio.ensure_future(self._bell.wait())
        try:
            await asyncio.wait((task, bell), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                watchdog.patience = self._drain + PATIENCE_SECONDS
                watchdog.answer()
                await asyncio.wait((task,), timeout=self._drain)
                watchdog.answer()
            if not task.done():
                assert self.stop_signal is not None
                raise Stopped(
                    self.stop_signal, f"{self.stop_signal.name}: what was not finished after {self._drain:g} s is left"
                )
            return task.result()
        finally:
            bell.cancel()
            task.cancel()
            await asyncio.wait((task,))

    def _hear(self, number: int, frame: FrameType | None) -> None:
        arm(number, self._hear)
        if self.stop_signal is not None:
            raise Interrupted(number)
        self.stop_signal = signal.Signals(number)
        self._loop.call_soon_threadsafe(self._bell.set)
