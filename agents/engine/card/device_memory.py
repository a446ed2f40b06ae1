"""Memory of a device, and the share that models take; torch is not imported."""

import os
from pathlib import Path

LEARNING_BYTES = 12  # of a weight that is trained: its gradient and AdamW's two moments, in float32
MOMENTS_BYTES = 8  # of these, what AdamW's moments take
_CGROUP = Path("/sys/fs/cgroup")


def main_memory() -> tuple[float, float]:
    """Bytes of memory of this machine, and of those that are free; a container's limit counts."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = free = float(page * os.sysconf("SC_PHYS_PAGES"))
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            free = float(line.split()[1]) * 1024
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # control groups, version 2 and 1
        if (limit := cgroup(name)).isdecimal():
            total = min(total, float(limit))
    return total, min(total, free)


def cgroup(name: str) -> str:
    """The text of a file of this process's control group; empty if there is none."""
    return _read(_CGROUP / name)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def training_bytes(parameters: float, trained: float, *, on_gpu: bool) -> float:
    """Bytes that training keeps for a model, activations apart.

    Weights that are trained, their gradients and AdamW's two moments are float32. On a GPU the engine draws with a
    bfloat16 copy of them, and frozen weights are bfloat16.
    """
    each, frozen = (18, 2) if on_gpu else (16, 4)
    return trained * each + (parameters - trained) * frozen


def cache_room(memory: float, training: float, *, on_gpu: bool) -> float:
    """Bytes that keys and values may take if nothing else is asked for.

    What is free at the moment does not count: results would depend on the moment.

    Args:
        memory: of the device.
        training: that training keeps there while the engine draws.
    """
    return max(0.0, 0.85 * memory - training if on_gpu else min(memory / 2, memory - training))


def size(count: float) -> str:
    """Bytes for a reader.

    >>> size(2_400_000), size(24.6e9)
    ('2.4 MB', '24.6 GB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count / 1e3:.1f} kB"
