"""A device that is not there: tensors that say they are on a GPU, and are as strict about it as CUDA's.

Each holds an ordinary tensor with its values, so that everything is computed as on a CPU. An operation on tensors of
both devices raises, as it would on a GPU, and each wait of Python for the device is noted. So a test without a GPU
finds what was left on the wrong device, and what is fetched from it inside a loop.

Not shown: autocast, kernels that exist on one device alone, other rounding, inference mode.
"""

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from simulated_graph import SimulatedRecorder
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from manyturn.agents.engine import transformers_engine
from manyturn.trainers.learn.passes.trie import segment_attention

GPU = torch.device("cuda:0")
_ACROSS = {"copy_", "_to_copy"}  # these alone go from device to device
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}  # indices on the CPU are copied, and waited for
_WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "bincount", "equal", "unique2", "_unique2"}


class Ledger:
    """Bytes on the device, as an allocator that caches and a driver see them.

    Attributes:
        total: of the device.
        allocated: of tensors that live.
        reserved: of tensors that live, and of those that did since the cache was emptied.
        others: of other processes.
        looks: reserved, allocated and the most that was reserved before, each time somebody asks what is free.
    """

    def begin(self, total: float) -> None:
        self.total, self.others, self.allocated, self.reserved = int(total), 0, 0, 0
        self.sizes, self.looks, self._most = dict[int, int](), list[tuple[int, int, int]](), 0

    def count(self, storage: torch.UntypedStorage) -> None:
        key = id(storage)  # one Python object stands for a storage as long as it lives
        if key not in self.sizes:
            self.sizes[key] = storage.nbytes()
            self.allocated += self.sizes[key]
            self.reserved = max(self.reserved, self.allocated)
            self._most = max(self._most, self.reserved)
            weakref.finalize(storage, self._forget, self.sizes, key)

    def _forget(self, sizes: dict[int, int], key: int) -> None:
        if sizes is self.sizes:
            self.allocated -= sizes.pop(key)

    def empty_cache(self) -> None:
        self.reserved = self.allocated

    def free(self) -> int:
        return self.total - self.reserved - self.others

    def look(self, device: Any = None) -> tuple[int, int]:
        self.looks.append((self.reserved, self.allocated, self._most))
        self._most = self.reserved
        return self.free(), self.total


ledger = Ledger()
ledger.begin(0)


class OnGpu(torch.Tensor):
    """A tensor on the device that is not there. Inside, PyTorch takes it for one of the device ``meta``."""

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> "OnGpu":
        return torch.Tensor._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device="meta",
            requires_grad=False,
        )

    def __init__(self, values: torch.Tensor):
        self.values = values.detach()
        ledger.count(self.values.untyped_storage())

    device = property(lambda self: GPU)  # type: ignore[assignment]
    is_cuda = property(lambda self: True)  # type: ignore[assignment]
    is_meta = property(lambda self: False)  # type: ignore[assignment]
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OnGpu({self.values})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, dict(kwargs or {}))


_ITEMS = {torch.Tensor.__getitem__, torch.Tensor.__setitem__}
_computed = [torch.float32]  # the type of the weights
events: list[str] = []  # waits of Python for the device, and passes of a model, in order
PASS = "embedding"


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = func.overloadpacket.__name__
    given = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, torch.Tensor)]
    _check(name, args, given)
    to = kwargs.get("device")
    if to is not None:
        kwargs["device"] = torch.device("cpu")
    leaves = to is not None and torch.device(to).type == "cpu"
    if name in _WAITS or leaves or (name == "copy_" and not all(isinstance(value, OnGpu) for value in given)):
        events.append(name)
    if name == PASS:
        events.append(name)
    found = func(*tree_map(_inside, args), **tree_map(_inside, kwargs))
    if name.endswith("_") and not name.endswith("__") and not name.startswith(("_foreach", "_fused")):
        return args[0]
    if func is torch.ops.aten.detach.default or not leaves:
        return tree_map(lambda value: OnGpu(value) if isinstance(value, torch.Tensor) else value, found)
    return found


def _inside(value: Any) -> Any:
    return value.values if isinstance(value, OnGpu) else value


def _check(name: str, args: tuple[Any, ...], given: list[torch.Tensor]) -> None:
    """As on a GPU: all on one device, but for numbers, copies and indices."""
    if name in _ACROSS:
        return
    if name in _INDEXING and isinstance(args[0], OnGpu):
        indices = [index for index in args[1] if index is not None]
        if any(not isinstance(index, OnGpu) for index in indices):
            events.append("index on the CPU")
        if any(index.dtype is torch.bool for index in indices):
            events.append("mask as an index")
        given = [args[0], *(value for value in args[2:] if isinstance(value, torch.Tensor))]
    strange = [value for value in given if not isinstance(value, OnGpu) and value.dim()]
    if strange:
        raise RuntimeError(
            f"Expected all tensors to be on the same device: {name} got one of shape {tuple(strange[0].shape)} on the "
            "CPU, and others on the GPU"
        )


class _Computing(TorchDispatchMode):
    """Makes with values what PyTorch makes by itself, such as a mask, on what it takes for the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "meta":
            return _run(func, args, kwargs)
        if any(isinstance(value, OnGpu) for value in tree_flatten((args, kwargs))[0]):
            return _run(func, args, kwargs)
        return func(*args, **kwargs)


class _Placing(TorchFunctionMode):
    """Makes tensors where they are asked for."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.Tensor.to, torch.Tensor.cuda):
            return self._to(func, args, kwargs)
        if func is torch.Tensor.tolist and isinstance(args[0], OnGpu):
            events.append("tolist")
            return args[0].values.tolist()
        if func is torch.Tensor.new_tensor and isinstance(args[0], OnGpu):
            events.append("to the GPU")
            return OnGpu(torch.tensor(*args[1:], dtype=args[0].dtype))
        if func in _ITEMS and isinstance(args[0], OnGpu):
            index = tuple(map(_sent, args[1])) if isinstance(args[1], tuple) else _sent(args[1])
            return func(args[0], index, *args[2:])
        if _is_gpu(kwargs.get("device")):
            kwargs["device"] = "cpu"
            made = func(*tree_map(_inside, args), **kwargs)
            needs = kwargs.get("requires_grad", False)
            return OnGpu(made).requires_grad_(needs) if isinstance(made, torch.Tensor) else made
        return func(*args, **kwargs)

    def _to(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own, *rest = args
        wish = kwargs.get("device") or next((x for x in rest if isinstance(x, str | torch.device | torch.Tensor)), None)
        place = wish.device if isinstance(wish, torch.Tensor) else wish
        if not _is_gpu(place) and func is not torch.Tensor.cuda:
            return func(*args, **kwargs)
        like = wish.dtype if isinstance(wish, torch.Tensor) else own.dtype
        dtype = kwargs.get("dtype") or next((x for x in rest if isinstance(x, torch.dtype)), like)
        if isinstance(own, OnGpu):
            return own if own.dtype == dtype else func(own, dtype)
        events.append("to the GPU")
        if own.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError("a gradient that goes from device to device")
        return OnGpu(own.detach().to(dtype, copy=True))


def _sent(index: Any) -> Any:
    """A list of places as a tensor on the device, which PyTorch makes of it by itself."""
    if not isinstance(index, list):
        return index
    events.append("to the GPU")
    return OnGpu(torch.tensor(index))


def _is_gpu(device: Any) -> bool:
    return device is not None and not isinstance(device, int) and torch.device(device).type == "cuda"


def varlen_attn(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *ends: Any, window_size: Any, scale: float, **_: Any
) -> torch.Tensor:
    """PyTorch's kernel for a GPU, by its contract; the values are computed by what the kernel is judged by."""
    *ends, most_queries, most_keys = ends
    assert query.dtype in (torch.float16, torch.bfloat16) and query.dtype == key.dtype == value.dtype
    assert query.is_cuda and key.is_cuda and value.is_cuda and window_size == (-1, 0)
    assert all(each.is_cuda and each.dtype == torch.int32 for each in ends)
    queries, keys = (torch.diff(_inside(each)).tolist() for each in ends)
    assert (max(queries), max(keys)) == (most_queries, most_keys) and sum(keys) == len(key) == len(value)
    events.append("attention in one call")
    output = torch.ops.manyturn.segment_attention(query, key, value, queries, keys, scale)
    return output.to(_computed[-1])  # here is no autocast to bring what follows into one type


class _Recorder(SimulatedRecorder):
    """Notes replays among the events."""

    def record(self, work: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        result, replay = super().record(work)

        def noted() -> None:
            events.append("replay")
            replay()

        return result, noted


@contextlib.contextmanager
def pretended(memory: float = 8e9, dtype: torch.dtype = torch.float32) -> Iterator[list[str]]:
    """While a GPU seems to be there; gives ``events``, which begin at nothing.

    Args:
        dtype: of the weights.
    """
    patch = pytest.MonkeyPatch()
    patch.setattr(sys.modules[__name__], "_computed", [dtype])

    def enter() -> None:
        _Computing().__enter__()
        _Placing().__enter__()

    threads = partial(ThreadPoolExecutor, initializer=enter)
    patch.setattr(transformers_engine, "ThreadPoolExecutor", threads)  # modes are of one thread
    patch.setattr(segment_attention, "varlen_attn", varlen_attn)
    patch.setattr(transformers_engine, "recorder_for", lambda device: _Recorder() if _is_gpu(device) else None)
    patch.setattr(torch.cuda, "is_bf16_supported", lambda *words: True)
    patch.setattr(torch.cuda, "is_available", lambda: True)
    patch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=memory, name="none"))
    patch.setattr(torch.cuda, "empty_cache", ledger.empty_cache)
    patch.setattr(torch.cuda, "mem_get_info", ledger.look)
    patch.setattr(torch.cuda, "memory_reserved", lambda device=None: ledger.reserved)
    # AdamW asks whether the GPU's stream is being captured, of which a build for CUDA would want a driver.
    patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    patch.setattr(torch.accelerator, "current_stream", lambda: SimpleNamespace(is_capturing=lambda: False))
    patch.setattr(torch, "inference_mode", torch.no_grad)  # which such tensors do not know
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    events.clear()
    ledger.begin(memory)
    try:
        with _Computing(), _Placing():
            yield events
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swaps)
        patch.undo()
