"""Resources that processes hold which run other people's code, read from /proc, and their limits."""

import contextlib
import os
from collections import Counter
from collections.abc import Iterator

from pydantic import Field

from manyturn.envs.contract.options.options import Options

LOOK_SECONDS = 0.25  # between two looks at what a process holds
_PAGE = os.sysconf("SC_PAGE_SIZE")
_HARD = 2.0  # how far above a limit a process is killed, whatever it does


class WorkerLimits(Options):
    """Limits of one process that runs an environment, with all processes that it started.

    A worker above a limit gets no new episode and ends after its last one. Above twice a limit any process is killed.
    """

    memory_mb: int = Field(default=2048, ge=1)
    """Resident memory in MB; pages that processes share count for each."""
    files: int = Field(default=512, ge=1)
    """Open files."""
    threads: int = Field(default=256, ge=1)
    """Threads."""
    processes: int = Field(default=64, ge=1)
    """Processes that it started and that have not been collected."""

    def strain(self, held: Counter[str]) -> tuple[float, str]:
        """The largest share of a limit that is used, and which limit that is."""
        return max((held[name] / most, name) for name, most in self)

    def excess(self, held: Counter[str]) -> str:
        """The reason for which a process has to be killed; empty if there is none."""
        strain, name = self.strain(held)
        if strain <= _HARD:
            return ""
        return f"it held {name} = {held[name]}, more than twice the limit of {getattr(self, name)}"


USUAL = WorkerLimits()
_QUARTER_MB = os.sysconf("SC_PHYS_PAGES") * _PAGE // 2**22
MANY_AT_ONCE = WorkerLimits(memory_mb=max(1, min(4096, _QUARTER_MB)), files=2048, threads=512, processes=128)
"""Limits of a process that opens one environment many times, as checks and measurements do."""


def held_below(root: int) -> Counter[str]:
    """Resources that the processes below ``root`` hold, the worker first; names as in ``WorkerLimits``."""
    held: Counter[str] = Counter(processes=-1)
    for pid in _below(root):
        held["processes"] += 1
        with contextlib.suppress(OSError):  # it has just ended, or belongs to another user
            # The name in parentheses may hold anything; after it the threads are field 20 of `man proc`, pages 24.
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            held["threads"] += int(fields[17])
            held["memory_mb"] += int(fields[21]) * _PAGE // 2**20
            held["files"] += len(os.listdir(f"/proc/{pid}/fd"))
    return held


def _below(root: int) -> Iterator[int]:
    """Ids of all processes below one."""
    waiting = _children(root)
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += _children(pid)


def _children(pid: int) -> list[int]:
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            pids += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return pids


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()
