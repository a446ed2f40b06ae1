"""The device that is measured: its name, clocks that wait for it, its memory at the peak.

A GPU works on while Python goes on, so nothing is timed or weighed without waiting for it. On a CPU the same calls
measure this process, so that each item can be tried without a GPU.
"""

import contextlib
import gc
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch

from manyturn.agents.engine.card.gpu_table import GPUS

# FLOP/s by what the driver calls the device. They are of the highest clocks, which no long computation keeps, so
# ``matmul_rate`` is measured too.
PEAKS = {gpu.driver: gpu.flops for gpu in GPUS.values()}


class Device:
    """The device that an item runs on.

    Args:
        name: cuda, cpu, or auto for a GPU if there is one.
    """

    def __init__(self, name: str = "auto"):
        if name == "cuda" and not torch.cuda.is_available():
            raise SystemExit("torch sees no GPU: install torch for CUDA, or try the kit with --toy --device cpu")
        self.torch = torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")
        self.on_gpu = self.torch.type == "cuda"

    def wait(self) -> None:
        """Until everything that was begun is done."""
        if self.on_gpu:
            torch.cuda.synchronize(self.torch)

    def clear(self) -> None:
        """Give up what no tensor holds any more."""
        gc.collect()
        if self.on_gpu:
            torch.cuda.empty_cache()

    def works(self) -> bool:
        """True if it still computes; an access outside of its memory, say, breaks it for the process."""
        try:
            self.wait()
            return bool(torch.ones(2, device=self.torch).sum().item() == 2.0)
        except RuntimeError:
            return False

    def forget_peak(self) -> None:
        """From now on ``peak`` is that of what comes next."""
        self.wait()
        self.clear()
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats(self.torch)
        else:
            with contextlib.suppress(OSError):  # some containers do not allow it: the peak is then that of the process
                Path("/proc/self/clear_refs").write_text("5")

    def peak(self) -> float:
        """Bytes of tensors at the highest since ``forget_peak``; on a CPU, of the process."""
        self.wait()
        return float(torch.cuda.max_memory_allocated(self.torch)) if self.on_gpu else _process("VmHWM")

    def taken(self) -> float:
        """Bytes of tensors now; on a CPU, of the process."""
        self.wait()
        return float(torch.cuda.memory_allocated(self.torch)) if self.on_gpu else _process("VmRSS")

    def seconds(self, work: Callable[[], Any], warm: int = 1, repeats: int = 3) -> float:
        """The median time of some work, after it was done ``warm`` times unmeasured."""
        seconds = []
        for number in range(warm + repeats):
            with self.timed() as took:
                work()
            if number >= warm:
                seconds.append(took[0])
        return median(seconds)

    @contextlib.contextmanager
    def timed(self) -> Iterator[list[float]]:
        """Seconds of what is inside, once it is left; what was begun before does not count."""
        took: list[float] = []
        self.wait()
        began = time.perf_counter()
        yield took
        self.wait()
        took.append(time.perf_counter() - began)

    @property
    def peak_rate(self) -> float | None:
        """FLOP/s in bfloat16 by its data sheet; None where we do not know the device."""
        name = self.facts()["device"]
        return next((rate for part, rate in PEAKS.items() if part in name), None) if self.on_gpu else None

    def matmul_rate(self, size: int) -> float:
        """FLOP/s of a product of two square matrices of random numbers in bfloat16: what can be reached at all."""
        left, right = (torch.randn(size, size, device=self.torch).to(torch.bfloat16) for _ in range(2))
        return 2 * size**3 / self.seconds(lambda: left @ right, warm=3, repeats=10)

    def copy_rate(self, size: float) -> float:
        """Bytes per second of a copy within the device, those that are read and those that are written."""
        source = torch.zeros(int(size), dtype=torch.uint8, device=self.torch)
        target = torch.empty_like(source)
        return 2 * size / self.seconds(lambda: target.copy_(source), warm=3, repeats=10)

    def facts(self) -> dict[str, str]:
        """Provenance of a figure."""
        if not self.on_gpu:
            return {"device": "cpu", "driver": "none", "cuda": "none"}
        return {
            "device": torch.cuda.get_device_name(self.torch),
            "driver": _driver(),
            "cuda": torch.version.cuda or "unknown",
        }


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        report = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return report.split("\n")[0].strip() or "unknown"


def _process(entry: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{entry}:"):
            return int(line.split()[1]) * 1024.0
    raise RuntimeError(f"/proc/self/status has no {entry}: without a GPU the kit needs Linux")
