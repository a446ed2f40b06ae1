"""Progress of an evaluation: a bar on a terminal or in a notebook, and a line now and then in a file."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from manyturn.agents.evaluation.finished_episodes import Progress
from manyturn.agents.evaluation.summary_table import count
from manyturn.terminal.escape import visible
from manyturn.terminal.notebook_bar import notebook_bar

_EVERY, _LATER, _EARLY = 10.0, 60.0, 600.0  # seconds between lines, first and after the seconds named last
_LEAST = 2.0  # seconds between lines at tenths of the episodes
_LOOK = 0.5  # seconds between looks at the clock


def stop(bar: Bar) -> None:
    """Stop a bar; for one that was never shown, rich before 15 would write an empty line."""
    if not bar.disable:
        bar.stop()


class Watch:
    """Shows how far one evaluation is, as an asynchronous context manager, and says at a sudden end how to go on.

    Args:
        name: the policy.
        out: the folder that keeps what is finished, if there is one.
        console: where to; default: the standard error output.
        clock: gives seconds.
    """

    def __init__(
        self,
        name: str,
        out: Path | None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._name, self._out, self._clock = visible(name), out, clock
        self._console = console or Console(stderr=True, highlight=False, force_jupyter=False)
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        column = TextColumn("{task.fields[figures]}", markup=False)
        # A terminal that only appends, as in editors and under TERM=dumb, gets lines like a log.
        self._cell = notebook_bar()
        on_terminal = self._cell is None and self._console.is_terminal and not self._console.is_dumb_terminal
        self._bar = Bar(*columns, column, console=self._console, transient=True, disable=not on_terminal)
        self._draws = on_terminal or self._cell is not None
        self._shown = self._bar.add_task(self._name, total=None, figures="")
        self._began = self._line_time = clock()
        self._line_done = 0
        self._progress: Progress | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._bar.start()
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop(self._bar)
        if self._ticking is not None:
            self._ticking.cancel()
        progress, is_interrupt = self._progress, isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        if error is not None and progress is not None and (is_interrupt or (self._out is not None and progress.done)):
            self._say(f"{self._name}: stopped after {_of_all(progress)}; {how_to_go_on(self._out)}")

    def __call__(self, progress: Progress) -> None:
        """The evaluation has begun, or an episode has ended."""
        if self._progress is None:
            self._line_done = progress.done
        self._progress = progress
        self._bar.update(self._shown, total=progress.total, completed=progress.done, figures=self._figures(progress))
        if self._cell is not None:
            self._cell(self._line(progress), progress.done, progress.total)
        self._say_if_due(at_a_tenth=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            if self._progress is not None:
                self._bar.update(self._shown, figures=self._figures(self._progress))
                self._say_if_due(at_a_tenth=False)

    def _say_if_due(self, at_a_tenth: bool) -> None:
        progress, now = self._progress, self._clock()
        if progress is None or self._draws or progress.done == progress.total:
            return
        since = now - self._line_time
        tenth = 10 * progress.done // progress.total > 10 * self._line_done // progress.total
        if since >= (_EVERY if now - self._began < _EARLY else _LATER) or (at_a_tenth and tenth and since >= _LEAST):
            self._line_time, self._line_done = now, progress.done
            self._say(self._line(progress))

    def _line(self, progress: Progress) -> str:
        return f"{self._name}: {_of_all(progress)}, {self._figures(progress)}"

    def _figures(self, progress: Progress) -> str:
        """Success, speed, tokens, cost and the time that is left, as far as they are known."""
        parts = [f"success {progress.won / progress.judged:.0%}"] if progress.judged else []
        if progress.errors:
            parts.append(f"errors {progress.errors}")
        seconds = self._clock() - self._began
        if progress.played and seconds > 0:
            rate = progress.played / seconds
            parts.append(f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute")
        spent = progress.spent
        if spent.prompt_tokens is not None:
            parts.append(f"{count(spent.prompt_tokens)} prompt and {count(spent.reply_tokens)} reply tokens")
        if spent.cost is not None:
            parts.append(f"cost {spent.cost:.4g} USD")
        if progress.played and progress.done < progress.total:
            parts.append(f"{duration(seconds * (progress.total - progress.done) / progress.played)} left")
        return ", ".join(parts) or "none has ended yet"

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
        sys.stderr.flush()


def _of_all(progress: Progress) -> str:
    return f"{progress.done} of {progress.total} episodes"


def how_to_go_on(out: Path | None) -> str:
    """Advice after an interruption."""
    if out is None:
        return "nothing is kept: give --out FOLDER, and an interrupted evaluation continues"
    return f"{out} keeps them, and the same command continues"


def duration(seconds: float) -> str:
    """Seconds in the two units that matter.

    >>> duration(42), duration(61), duration(7_300)
    ('42 s', '1 min 1 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
