"""Hand-over of a device between a learner and the engine that draws with its weights.

PyTorch keeps the memory of tensors that are gone, and another process on the same card cannot use it. So the learner
gives it back before the engine loads weights or wakes, and what the engine needs must be free then. An engine of this
process gives it back when it falls asleep. On a CPU there is nothing to give back.
"""

import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import torch

from manyturn.agents.engine.card.device_memory import size
from manyturn.agents.engine.engine import Engine
from manyturn.envs.contract.options.options import ConfigError


def release_cached(device: torch.device) -> None:
    """Give back the memory that PyTorch keeps on a GPU for tensors to come."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


@dataclass
class DeviceHandover:
    """The one place by which an engine wakes and sleeps while a learner holds the same device.

    Attributes:
        release: gives back what the learner has cached, on the devices of all its ranks.
        is_drawing: whether the engine has the device.
    """

    device: torch.device
    engine: Engine
    release: Callable[[], None]
    is_drawing: bool = field(default=False, init=False)

    def _check(self) -> None:
        """Raise ConfigError if less is free than the engine needs."""
        if self.device.type != "cuda" or not (needed := self.engine.wake_bytes):
            return
        free, total = torch.cuda.mem_get_info(self.device)
        if free < needed:
            mine = torch.cuda.memory_reserved(self.device)
            raise ConfigError(
                f"the engine needs {size(needed)} of the card, which has {size(total)}, and {size(free)} are free: "
                f"this process holds {size(mine)} of the rest. {self._fix(needed - free, total - free - mine)}"
            )

    @staticmethod
    def _fix(missing: float, others: float) -> str:
        if others > missing:
            return (
                f"End other processes on the card (nvidia-smi lists them), or lower engine.kv_gib by "
                f"{missing / 2**30:.2f}"
            )
        return f"Lower engine.kv_gib by {missing / 2**30:.2f}, or set learner.offload_optimizer to true"

    async def to_engine(self, load: Callable[[], Awaitable[None]] | None = None) -> None:
        """Have the engine draw.

        Args:
            load: gives it new weights; None: it draws with those that it has.

        Raises:
            ConfigError: less is free than the engine needs.
        """
        if not self.is_drawing:
            self.release()
            self._check()
        if load is not None:
            await load()
        if not self.is_drawing:
            self.release()  # the copies that were made for the load
            await self.engine.wake()
        self.is_drawing = True

    async def to_learner(self) -> None:
        """Have the engine sleep, and leave its memory to the learner."""
        await self.engine.sleep()
        self.is_drawing = False
        release_cached(self.device)
