"""An interpreter that seems to persist from one cell to the next.

Nothing but files outlives a command in a sandbox, and a saved interpreter would have to be trusted. So the state of a
session is the text of its cells: before each new one, those that ran to their end run again in an empty sandbox, their
output unseen; all of it is one program. A sandbox is held for no longer than that, and the state is known to the byte.
"""

import re
import shlex
from bisect import bisect
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.pool import lease
from manyturn.containers.sandbox import WORKSPACE, Ran, SandboxOverrun, SandboxRefused
from manyturn.envs.software.source.text_sanitizer import bounded
from manyturn.envs.tools.tool import ToolError

LONGEST = 20_000  # characters of a cell
SECONDS = 5
_DEADLINE = 30.0  # s, for those that sleep, and on a machine that is busy
_MEMORY_SHARE = 0.75  # of the sandbox's memory: above it Python raises MemoryError, before the sandbox is in danger
_OUT_OF_TIME, _KILLED = 128 + 24, 128 + 9
_FILE = f"{WORKSPACE}/session.py"
_PLACE = re.compile(rf'File "{re.escape(_FILE)}", line (\d{{1,9}})')
_PROLOGUE = Path(__file__).with_name("prologue.py").read_text(encoding="utf-8")
_ENVIRON = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}


class Shown(NamedTuple):
    """Result of a cell.

    Attributes:
        text: its output, bounded, or what went wrong.
        completed: it ran to its end, and belongs to the session.
    """

    text: str
    completed: bool


class Session:
    """The cells of one interpreter.

    Args:
        engine: what sandboxes are made with.
        seconds: of the processor's time, for all cells together.

    Attributes:
        cells: those that ran to their end.
    """

    def __init__(self, engine: ContainerEngine, seconds: int = SECONDS):
        self._engine, self._seconds = engine, seconds
        self.cells: list[str] = []

    def run(self, cell: str) -> Shown:
        """Run a cell after those before it. Raises ToolError for what is no cell, and what a sandbox raises."""
        if len(cell) > LONGEST:
            raise ToolError(f"the cell has {len(cell):,} characters: use at most {LONGEST:,}")
        if "\0" in cell:
            raise ToolError("a cell cannot contain NUL characters")
        parts = [_PROLOGUE, *(f"{text}\n_ended()\n" for text in (*self.cells, cell))]
        ran = self._ran("".join(parts))
        begun, ended = bool(ran.report), len(ran.report) - 1
        if ran.status == 0 and ended == len(self.cells) + 1:
            self.cells.append(cell)
            return Shown(bounded(ran.output.rstrip("\n")) or "[no output]", completed=True)
        if ran.timed_out or ran.status == _OUT_OF_TIME:
            remark = f"[stopped: all cells of the session share {self._seconds} s; this cell is undone]"
        elif ran.status == _KILLED:
            remark = "[killed: too much memory or time; this cell is undone]"
        elif begun and ended < len(self.cells):
            remark = (
                f"[cell {ended + 1} gave a different result when it ran again: the session restarts without any cell]"
            )
            self.cells.clear()
        else:
            remark = "[this cell is undone]"
        return Shown(bounded(f"{_placed(ran.output, parts).rstrip()}\n{remark}".lstrip("\n")), completed=False)

    def _ran(self, program: str) -> Ran:
        limits = f"ulimit -c 0 -v {int(self._engine.limits.memory_mb * 1024 * _MEMORY_SHARE)}"
        time = f"ulimit -S -t {self._seconds}; ulimit -H -t {self._seconds + 1}"
        command = f"{shlex.quote(self._engine.python)} {_FILE} {len(self.cells)}"
        with lease(self._engine) as sandbox:
            try:
                sandbox.write(_FILE, program.encode())
            except UnicodeEncodeError:
                raise ToolError("the cell has a lone surrogate, which no program can hold") from None
            except SandboxRefused as error:
                raise ToolError(str(error)) from None
            script = f"{limits}; {time}; exec {command}"
            try:
                return sandbox.run(script, seconds=_DEADLINE, environ=_ENVIRON, report=True)
            except SandboxOverrun:  # the cells did that, and another sandbox runs those that are kept
                return Ran(_KILLED, "", 0.0)


def _placed(output: str, parts: list[str]) -> str:
    """Tracebacks with the lines of cells in place of those of the program that the parts make up."""
    starts = [0, *accumulate(part.count("\n") for part in parts)]

    def place(match: re.Match[str]) -> str:
        line = int(match[1]) - 1
        part = bisect(starts, line) - 1
        return f"Cell {part}, line {line - starts[part] + 1}" if 0 < part < len(parts) else match[0]

    return _PLACE.sub(place, output)
