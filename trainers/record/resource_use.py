"""Time and memory that a run takes.

CPU time stands beside wall time: a machine that others use too stretches wall time and hardly moves CPU time, so that
CPU time compares runs of different hours.
"""

import ctypes
import platform
import resource
import sys
import time
from pathlib import Path

import torch

from manyturn.agents.engine.card.device_memory import main_memory

_STATUS = Path("/proc/self/status")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_LARGEST_KEPT, _MOST_KEPT = 2**25, 2**29  # bytes of a block, the most that glibc allows, and of all


class Stopwatch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._began = self._now()

    def lap(self, name: str) -> dict[str, float]:
        """Seconds since it was made or last asked, as metrics ``NAME_seconds`` and ``NAME_cpu_seconds``.

        Seconds of the processor are those of this process, all its threads together.
        """
        now, began = self._now(), self._began
        self._began = now
        wall, cpu = (round(after - before, 3) for after, before in zip(now, began, strict=True))
        return {f"{name}_seconds": wall, f"{name}_cpu_seconds": cpu}

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.monotonic(), time.process_time()


def peak_memory() -> dict[str, float]:
    """Megabytes at the peak so far: ``peak_memory_mb`` of main memory, ``peak_device_mb`` of a GPU if there is one."""
    figures = {"peak_memory_mb": round(_process() / 1e6, 1)}
    if torch.cuda.is_initialized():
        figures["peak_device_mb"] = round(torch.cuda.max_memory_allocated() / 1e6, 1)
    return figures


def keep_freed_memory() -> None:
    """Have the C library keep what tensors free, up to half a gigabyte, for the next ones.

    It would give their pages back to the system otherwise, which clears them again for every pass. Other libraries than
    glibc are left as they are.
    """
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
        library.mallopt(_TRIM_THRESHOLD, _MOST_KEPT)


def spare_memory() -> float:
    """Bytes of main memory that are free also while this process takes as much of it as it ever did."""
    return main_memory()[1] - (_process() - (_status("VmRSS:") or 0.0))


def _process() -> float:
    """Bytes. The system's other count begins with what the parent had when it started this process."""
    if (peak := _status("VmHWM:")) is not None:
        return peak
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024)


def _status(name: str) -> float | None:
    """Bytes that the system counts for this process; None where it does not say."""
    for line in _STATUS.read_text(encoding="ascii").splitlines() if _STATUS.is_file() else ():
        if line.startswith(name):
            return float(line.split()[1]) * 1024
    return None
