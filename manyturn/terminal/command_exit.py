"""End of a command: signals, exit codes, and the one line that an error becomes."""

import asyncio
import contextlib
import errno
import linecache
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Self, TypeVar

from manyturn.envs.contract.env.error_location import is_of_file, place_in, place_of
from manyturn.envs.contract.options.plugins import PluginWarning, extra_with
from manyturn.envs.hosting.local.shutdown_watchdog import Interrupted, arm, watchdog
from manyturn.terminal.escape import visible

Result = TypeVar("Result")

UNFORESEEN, BAD_INPUT, LEARNING_FAILED, DISK, TOO_MANY_ERRORS, NO_SIGNAL = 1, 2, 3, 4, 5, 6
HELP = (
    "Exit codes: 0 done; 1 an unexpected error, a check that failed, or another rank that has ended; 2 bad input; "
    "3 learning failed; 4 the disk is full or cannot be written; 5 too many errors, or no host or sampler is left; "
    "6 stopping.no_signal ended the run; "
    "130 Ctrl-C; 143 SIGTERM, or 0 for a training run that saved itself. MANYTURN_DEBUG=1 shows where an error came "
    "from."
)
# By name, so that no command has to import what raises them.
_BY_NAME = {
    "NoSignal": NO_SIGNAL,
    "LearningFailed": LEARNING_FAILED,
    "DiskFull": DISK,
    "TooManyErrors": TOO_MANY_ERRORS,
    "RankLost": UNFORESEEN,
    "HostsLost": TOO_MANY_ERRORS,
    "EngineLost": TOO_MANY_ERRORS,
}
_INSIST_SECONDS = 3.0
_DISK = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "the disk is full: free some space")
_DISK[errno.EIO] = "the disk fails: choose another"
_PLACE = dict.fromkeys(
    (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR),
    "choose another place",
)


class SignalWatch:
    """Hears SIGTERM and SIGINT for a command, as a context manager: the first asks it to end, the second ends it.

    Both end everything that the command started. A signal that is ignored, as in a background job, stays so.

    Attributes:
        last_signal: the last one that came.
    """

    def __init__(self) -> None:
        self.last_signal: signal.Signals | None = None
        self._ask: Callable[[], object] | None = None
        self._in_order = self._insisted = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for name in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(name)
            if before is not signal.SIG_IGN:
                self._before[name] = before
                arm(name, self)
        watchdog.start()
        return self

    def __exit__(self, *_: object) -> None:
        watchdog.stop()
        for name, handler in self._before.items():
            signal.signal(name, handler)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        arm(number, self)
        first, self.last_signal = self.last_signal is None, signal.Signals(number)
        if self._insisted:
            self._insisted = False
            place = place_in(frame)
            at = f" ({place})" if place else ""
            text = f"manyturn: SIGINT: nothing answered for {_INSIST_SECONDS:g} s{at}, so the command was ended"
            with contextlib.suppress(OSError):
                os.write(2, f"{visible(text)}\n".encode(errors="replace"))
        if not first or self._ask is None:
            raise Interrupted(number)
        self._ask()
        if number == signal.SIGINT:  # a person waits; whoever manages a machine gives it time to save
            timer = threading.Timer(_INSIST_SECONDS, self._insist)
            timer.daemon = True
            timer.start()

    def _insist(self) -> None:
        """Interrupt what holds the main thread up, so that the event loop has not even begun to end the work."""
        if self._ask is not None and not self._in_order and watchdog.is_hurried:
            main = threading.main_thread()
            assert main.ident is not None
            self._insisted = True
            signal.pthread_kill(main.ident, signal.SIGINT)  # a true one, which wakes it from a system call

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Result of ``work``; the first signal cancels it, so that it can close what it has opened."""

        begun: list[asyncio.Task[Any]] = []

        async def cancellable() -> Result:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None
            begun.append(task)

            def end() -> None:
                self._in_order = True
                task.cancel()

            self._ask = lambda: loop.call_soon_threadsafe(end)
            try:
                return await work
            finally:
                self._ask = None

        try:
            return asyncio.run(cancellable())
        except asyncio.CancelledError:
            if self.last_signal is None:
                raise
            raise Interrupted(self.last_signal) from None
        finally:
            for task in begun:
                if task.done() and not task.cancelled():
                    task.exception()  # it is on its way up; asyncio would warn that it was never seen


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run ``work`` in an event loop of its own that a signal ends in order, and return its result."""
    ending = signal.getsignal(signal.SIGTERM)
    return ending.run(work) if isinstance(ending, SignalWatch) else asyncio.run(work)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print warnings that are meant for the user as errors are printed, and none of what libraries plan."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], filename: str, *rest: Any, **named: Any) -> None:
            if issubclass(category, PluginWarning):
                print(visible(f"manyturn: warning: {message}"), file=sys.stderr)
            elif not (issubclass(category, FutureWarning) and _is_installed(filename)):
                usual(message, category, filename, *rest, **named)

        warnings.showwarning = show
        yield


def _is_installed(filename: str) -> bool:
    """True for a file of a library, whose plans for its next versions are nothing that a user can act on."""
    return "site-packages" in Path(filename).parts and not os.environ.get("MANYTURN_DEBUG")


def innermost(error: BaseException) -> BaseException:
    """The first error of a group, or of a group in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def code_of(error: BaseException) -> int:
    """The exit code of a command that ended with an error."""
    ours = [kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("manyturn.")]
    for name in ours:
        if name in _BY_NAME:
            return _BY_NAME[name]
    if isinstance(error, OSError) and error.errno in _DISK:
        return DISK
    return BAD_INPUT if _is_foreseen(error) or _extra(error) or _place_in_file(error) else UNFORESEEN


def line_of(error: BaseException) -> str:
    """Error and fix in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and (fix := (_DISK | _PLACE).get(error.errno or 0)):
        return f"{error.filename or 'a file'}: {error.strerror}: {fix}"
    if _is_foreseen(error):
        return text.replace("into bool.", "into true or false: leave the value out")  # cyclopts names no fix
    if extra := _extra(error):
        package = str(getattr(error, "name", "")).partition(".")[0]
        return f"the package {package} is missing: pip install 'manyturn[{extra}]'"
    text = f"{type(error).__name__}: {text}"
    if place := _place_in_file(error):
        return f"{place}, raised {text}: fix the file"
    return f"{text} (MANYTURN_DEBUG=1 shows where)"


def lack_of(error: BaseException) -> str:
    """Missing thing that an error names, short enough for a table: the extra to install, or else its line."""
    text = line_of(error)
    extra = re.search(r"pip install '(manyturn\[[^']+\])'", text)
    return f"needs {extra[1]}" if extra else text


def _is_foreseen(error: BaseException) -> bool:
    """True if the text was written for the user: we raised it, or it names a file or a word typed."""
    if type(error).__module__.partition(".")[0] in ("manyturn", "cyclopts"):
        return True
    if isinstance(error, OSError) and error.filename is not None:
        return True
    steps = list(traceback.walk_tb(error.__traceback__))
    if not steps:
        return False
    frame, line = steps[-1]
    here = frame.f_globals.get("__name__", "").startswith("manyturn.")
    return here and linecache.getline(frame.f_code.co_filename, line).strip().startswith("raise ")


def _extra(error: BaseException) -> str | None:
    """The extra of manyturn that brings the package that could not be imported."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None or _place_in_file(error):
        return None
    return extra_with(error.name)


def _place_in_file(error: BaseException) -> str | None:
    """Place in the user's own file where it was raised: the innermost line."""
    return place_of(error) if isinstance(error, SyntaxError) or is_of_file(error) else None
