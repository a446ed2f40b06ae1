"""Memory of a process in MB, as Linux counts it."""

from pathlib import Path


def peak_mb(process: int | str = "self") -> float:
    """Peak resident memory of a process in MB, so far. Raises RuntimeError without Linux's /proc."""
    return _status_mb(process, "VmHWM")


def resident_mb(process: int | str = "self") -> float:
    """Resident memory of a process in MB, now. Raises RuntimeError without Linux's /proc."""
    return _status_mb(process, "VmRSS")


def _status_mb(process: int | str, entry: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{entry}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc/{process}/status has no {entry}: this benchmark needs Linux")
