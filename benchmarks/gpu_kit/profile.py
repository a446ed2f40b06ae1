"""Profile of work on a device: its kernels, how many are launched, how long it waits for Python."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu_kit.device import Device

_TOP = 15
_LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")
_NAME = 100  # characters; those of templates are pages long


def profiled(device: Device, work: Callable[[], Any], passes: int) -> dict[str, Any]:
    """Figures of a profile.

    On a CPU, operations of PyTorch that call no other stand for kernels.

    Args:
        passes: that the work makes; figures are of one.

    Returns:
        launches: kernels that Python starts; copies between host and device: ``copies``.
        busy_ms, idle_share: when a kernel ran, and the share of the time in which none did. Profiling itself slows
            Python, so that the share is an upper bound.
        top: the kernels that took most: name, milliseconds, count.
    """
    # On a GPU the operations of PyTorch are not needed: a pass has a hundred thousand of them.
    activity = ProfilerActivity.CUDA if device.on_gpu else ProfilerActivity.CPU
    with profile(activities=[activity]) as seen, device.timed() as took:
        work()
        device.wait()
    events = list(seen.events() or [])
    kernels = [event for event in events if _is_kernel(event, device.on_gpu)]
    launches = sum(event.name.startswith(_LAUNCHES) for event in events) if device.on_gpu else len(kernels)
    busy = _union((event.time_range.start, event.time_range.end) for event in kernels) / 1e6
    return {
        "profiled_ms": 1e3 * took[0] / passes,
        "launches": launches / passes,
        "copies": sum(event.name.startswith("cudaMemcpy") for event in events) / passes,
        "busy_ms": 1e3 * busy / passes,
        "idle_share": max(0.0, 1 - busy / took[0]),
        "top": _top(kernels, passes),
    }


def _is_kernel(event: FunctionEvent, on_gpu: bool) -> bool:
    if on_gpu:
        # Ranges that are named by Python have twins on the device, which are no work.
        return event.device_type == torch.autograd.DeviceType.CUDA and not event.is_user_annotation
    return event.name.startswith("aten::") and not event.cpu_children


def _union(spans: Iterable[tuple[float, float]]) -> float:
    """Length of what spans cover.

    >>> _union([(0, 2), (1, 3), (5, 6)])
    4.0
    """
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _top(kernels: Iterable[FunctionEvent], passes: int) -> list[list[Any]]:
    sums, counts = defaultdict[str, float](float), defaultdict[str, int](int)
    for event in kernels:
        name = event.name[:_NAME]
        sums[name] += event.time_range.elapsed_us() / 1e3
        counts[name] += 1
    most = sorted(sums, key=lambda name: -sums[name])[:_TOP]
    return [[name, round(sums[name] / passes, 4), round(counts[name] / passes, 2)] for name in most]
