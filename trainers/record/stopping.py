"""Stopping a run from outside: the first signal lets the step finish and be saved, the second ends it at once."""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Self, TypeVar

Result = TypeVar("Result")

DRAIN_SECONDS = 30.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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
    nohup, stays so. The second one raises KeyboardInterrupt, while the weights are being updated too.

    Args:
        drain: seconds that unfinished episodes have to end.

    Attributes:
        asked: the signal that came, if one did.
    """

    def __init__(self, drain: float = DRAIN_SECONDS):
        self.asked: signal.Signals | None = None
        self._drain = drain
        self._bell = asyncio.Event()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for name in _SIGNALS:
            if signal.getsignal(name) is signal.SIG_IGN:
                continue
            try:
                # Not the event loop's own handlers, which are not heard while a step is being learnt from.
                self._before[name] = signal.signal(name, self._hear)
            except ValueError:
                break
        return self

    def __exit__(self, *exception: object) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``; once a stop is asked for, it has ``drain`` seconds before it is cancelled.

        Raises:
            Stopped: it did not end in time, or a stop had been asked for before it began.
        """
        if self.asked:
            work.close()
            raise Stopped(self.asked, f"{self.asked.name}: what was begun has been finished")
        task, bell = asyncio.ensure_future(work), asyncio.ensure_future(self._bell.wait())
        try:
            await asyncio.wait((task, bell), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait((task,), timeout=self._drain)
            if not task.done():
                assert self.asked is not None
                raise Stopped(self.asked, f"{self.asked.name}: what was not finished after {self._drain:g} s is left")
            return task.result()
        finally:
            bell.cancel()
            task.cancel()
            await asyncio.wait((task,))

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None:
            raise KeyboardInterrupt
        self.asked = signal.Signals(number)
        self._loop.call_soon_threadsafe(self._bell.set)
