"""Memory that a described model may take: it is counted on the meta device before any of it is taken.

A description is a few bytes, whatever it describes: three million layers, or a vocabulary of billions. So its parts are
limited before its configuration is read, and a build can be ended between any two of its modules.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from manyturn.agents.engine.card.device_memory import main_memory, size

if TYPE_CHECKING:
    import torch
    from torch import nn

_COUNTS = ("layer", "block", "expert", "head", "stage", "group")
_MOST_PARTS = 10_000  # of a kind: the largest models have some hundreds of layers, heads and experts
_MOST_MODULES = 200_000
_SHARE = 0.9  # of the memory that is free


class BuildEnded(Exception):
    """The model is not wanted any more."""


def check_parts(plain: Mapping[str, Any]) -> None:
    """Raise ValueError for a configuration, as plain values, that counts more parts than any model has."""
    for name, value in plain.items():
        if isinstance(value, Mapping):
            check_parts(value)
        count = len(value) if isinstance(value, list) else value
        counts_parts = any(word in name.lower() for word in _COUNTS) and "size" not in name.lower()
        if counts_parts and isinstance(count, int) and count > _MOST_PARTS:
            raise ValueError(f"the model asks for {name:.40} = {count:,}, and at most {_MOST_PARTS:,} are built")


def built(make: Callable[[], "nn.Module"], device: "torch.device", ended: threading.Event) -> "nn.Module":
    """The module that a function makes, in memory that is free.

    Args:
        device: that it is moved to.
        ended: set by another thread that wants it no more.

    Raises:
        ValueError: it needs more memory than is free, or has more parts than any model.
        BuildEnded: nobody wants it any more.
    """
    import torch

    with _interruptible(ended):
        with torch.device("meta"):
            shape = make()
        needed = sum(tensor.nbytes for tensor in (*shape.parameters(), *shape.buffers()))
        places = {"main memory": main_memory()[1]}
        if device.type == "cuda":
            places[str(device)] = torch.cuda.mem_get_info(device)[0]
        for place, free in places.items():
            if needed > _SHARE * free:
                raise ValueError(
                    f"the model takes {size(needed)}, and {place} has {size(free)} free: give a smaller one, or a "
                    "sampler with more memory"
                )
        return make()


@contextmanager
def _interruptible(ended: threading.Event) -> Iterator[None]:
    """Around the building of modules in this thread: each one that is added looks whether to go on."""
    from torch.nn.modules.module import register_module_module_registration_hook

    builder, count = threading.get_ident(), 0

    def look(module: "nn.Module", name: str, child: "nn.Module | None") -> None:
        nonlocal count
        if threading.get_ident() != builder:
            return
        count += 1
        if ended.is_set():
            raise BuildEnded("the model is not wanted any more")
        if count > _MOST_MODULES:
            raise ValueError(f"the model has more than {_MOST_MODULES:,} modules: give a smaller one")

    handle = register_module_module_registration_hook(look)
    try:
        yield
    finally:
        handle.remove()
