"""vLLM's worker, which a file next to the weights makes stop when half of a transfer has arrived."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyturn.agents.engine.vllm.worker import LoadsChecked, shapes

EXTENSION = "half_way.StopsHalfWay"
ORDER = "half-way"  # the file: "stand still" or "fail"
_REACHED = "half-way-reached"


class StopsHalfWay(LoadsChecked):
    """It loads as ever where there is no such file."""

    def load_checked(self, file: str) -> str:
        runner, order = self.model_runner, Path(file).with_name(ORDER)
        if not order.exists():
            return super().load_checked(file)
        half, told, reload = len(shapes(Path(file))) // 2, order.read_text(), runner.reload_weights
        order.unlink()

        def parts(weights: Iterator[Any]) -> Iterator[Any]:
            for number, named in enumerate(weights):
                if number == half:
                    order.with_name(_REACHED).write_text(f"{os.getpid()}\n")
                    if told == "fail":
                        raise OSError("the disk is gone")
                    os.kill(os.getpid(), signal.SIGSTOP)
                yield named

        runner.reload_weights = lambda weights_iterator: reload(weights_iterator=parts(weights_iterator))
        try:
            return super().load_checked(file)
        finally:
            runner.reload_weights = reload


async def reached(folder: Path) -> int:
    """Waits until half of the weights have arrived; the worker's process id."""
    mark = folder / _REACHED
    while not mark.exists() or not mark.read_text().endswith("\n"):
        await asyncio.sleep(0.1)
    worker = int(mark.read_text())
    mark.unlink()
    return worker
