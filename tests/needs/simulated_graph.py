"""A CUDA graph that is not there: the operations of some work are noted, and run again on the same tensors.

What Python computed while they were noted stays as it was, as in a graph: a length, a shape, a number from a list. So
a pass whose operations depend on its rows by more than the numbers in its tensors draws something else when replayed.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_FORBIDDEN = {"_local_scalar_dense", "nonzero", "masked_select", "equal"}  # they wait for the device


class SimulatedRecorder(TorchDispatchMode):
    """A recorder for any device.

    Attributes:
        records, replays: how often work was recorded, and how often it was replayed.
        recorded: operations of the work that was recorded last.
        replaying: whether operations are those of a replay.
    """

    pins = False

    def __init__(self) -> None:
        super().__init__()
        self._operations = list[tuple[Any, Any, Any, list[torch.Tensor]]]()
        self.records = self.recorded = self.replays = 0
        self.replaying = False

    def record(self, work: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        with self:
            result = work()
        operations, self._operations = self._operations, []
        self.records, self.recorded = self.records + 1, len(operations)

        def replay() -> None:
            self.replays, self.replaying = self.replays + 1, True
            for func, args, kwargs, results in operations:
                for before, now in zip(results, _tensors(func(*args, **kwargs)), strict=True):
                    if _place(before) != _place(now):
                        before.copy_(now)
            self.replaying = False

        result.fill_(float("nan"))  # a graph computes nothing while it is recorded
        return result, replay

    def forget(self) -> None:
        self._operations = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.overloadpacket.__name__, kwargs or {}
        if name in _FORBIDDEN:
            raise RuntimeError(f"operation not permitted when stream is capturing: {name}")
        result = func(*args, **kwargs)
        self._operations.append((func, args, kwargs, _tensors(result)))
        return result


def _tensors(result: Any) -> list[torch.Tensor]:
    return [each for each in tree_leaves(result) if isinstance(each, torch.Tensor)]


def _place(tensor: torch.Tensor) -> int:
    """The storage of a tensor, or of what stands for it on a device that is not there."""
    own = vars(tensor).get("values", tensor)
    return own.untyped_storage().data_ptr()
