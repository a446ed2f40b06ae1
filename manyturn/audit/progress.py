"""Progress of an audit: a bar on a terminal, a line for each pass elsewhere."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, TaskID


class AuditBar:
    """Shows passes on the standard error output; call it as an audit's ``report``."""

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        self._draws = console.is_terminal and not console.is_dumb_terminal
        self._bar = Progress(console=console, transient=True, disable=not self._draws)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, doing: str, done: int, of: int) -> None:
        """So much of a pass is done."""
        if not self._draws:
            if done == of:
                print(f"{doing}: {done} of {of} tasks", file=sys.stderr)
            return
        if doing not in self._tasks:
            self._tasks[doing] = self._bar.add_task(doing, total=of)
        self._bar.update(self._tasks[doing], completed=done)
