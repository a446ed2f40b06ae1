"""Time of decoding by kernels: passes of 128 rows with a model of 1.5B, timed, then seen by a profiler.

Passes are made by the engine's decoder without the event loop around it. Prompts are read before anything is timed, so
a pass draws one token of each row. ``read_share`` is the part of the device's rate of copies at which the weights were
read: 1 would be as fast as memory allows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from benchmarks.gpu_kit.cases import Case, Kit
from benchmarks.gpu_kit.device import Device
from benchmarks.gpu_kit.measurement_log import Figures
from benchmarks.gpu_kit.profile import profiled
from benchmarks.gpu_kit.random_models import SHAPES, random_model, with_adapters
from manyturn.agents.engine.decoding.decoder import Decoder
from manyturn.agents.engine.decoding.memory import cache_shape
from manyturn.agents.engine.decoding.page_pool import PAGE, PagePool
from manyturn.agents.engine.decoding.prefix_cache import Caches
from manyturn.agents.engine.decoding.recorded_pass import recorder_for
from manyturn.agents.engine.decoding.row import Row

_WARM = 8  # passes that are not timed


@dataclass(frozen=True)
class Load:
    """Rows that are drawn, and with what.

    Attributes:
        prompt: tokens of each.
        timed, profiled: passes.
        rank: of adapters that are not merged; 0: none.
        is_recorded: whether passes are recorded, as an engine's are; else each operation is launched.
    """

    name: str
    shape: str
    rows: int
    prompt: int
    timed: int
    profiled: int
    rank: int = 0
    is_recorded: bool = False

    @property
    def tokens(self) -> int:
        """The longest prompt and reply."""
        return self.prompt + _WARM + self.timed + self.profiled + 2


LOADS = (
    Load("1.5B, 128 rows, recorded", "qwen2.5-1.5b", 128, 768, 100, 10, is_recorded=True),
    Load("1.5B, 128 rows", "qwen2.5-1.5b", 128, 768, 100, 10),
    Load("1.5B, 128 rows, adapters", "qwen2.5-1.5b", 128, 768, 50, 5, 16),
    Load("1.5B, 8 rows", "qwen2.5-1.5b", 8, 768, 100, 5),
)
TOY = (
    Load("toy, recorded", "toy", 4, 20, 3, 2, is_recorded=True),
    Load("toy", "toy", 4, 20, 3, 2),
    Load("toy, adapters", "toy", 4, 20, 3, 2, 4),
)


def cases(kit: Kit) -> list[Case]:
    size, copied = (64, 1e6) if kit.toy else (8192, 4e9)
    ceilings = Case("the device", partial(ceiling, kit.device, size, copied))
    return [ceilings, *(Case(load.name, partial(decode, kit.device, load)) for load in (TOY if kit.toy else LOADS))]


def ceiling(device: Device, size: int, copied: float) -> Figures:
    """Peak speed of the device, and the cost of a launch."""
    one = torch.ones(1, device=device.torch)

    def launches() -> None:
        for _ in range(1000):
            one.add_(1)

    return {
        "product_flops_per_s": device.matmul_rate(size),
        "product_size": size,
        "copy_bytes_per_s": device.copy_rate(copied),
        "launch_us": 1e6 * device.seconds(launches) / 1000,
    }


def decode(device: Device, load: Load) -> Figures:
    """Seconds of a pass, and what it is made of."""
    model = random_model(load.shape, device.torch, torch.bfloat16 if device.on_gpu else torch.float32)
    weights = sum(p.nbytes for p in model.parameters())
    if load.rank:
        model = with_adapters(model, load.rank)
    shape = cache_shape(model.config, model.dtype)
    pool = PagePool(shape, load.rows * -(-load.tokens // PAGE), model.device)
    recorder = recorder_for(device.torch) if load.is_recorded else None
    decoder, rows = Decoder(model, frozenset(), pool, recorder), _rows(pool, load)
    device.forget_peak()
    with device.timed() as reading:
        while any(row.computed < row.length for row in rows if not row.ids):
            decoder.advance(rows)
    _advance(decoder, rows, _WARM)
    with device.timed() as took:
        _advance(decoder, rows, load.timed)
    seconds = took[0] / load.timed
    return {
        "rows": load.rows,
        "prompt": load.prompt,
        "read_tokens_per_s": load.rows * load.prompt / reading[0],
        "pass_ms": 1e3 * seconds,
        "drawn_tokens_per_s": load.rows / seconds,
        "read_share": weights / seconds / (device.copy_rate(1e6 if load.shape == "toy" else 4e9) / 2),
        "peak_gb": device.peak() / 1e9,
        **profiled(device, lambda: _advance(decoder, rows, load.profiled), load.profiled),
    }


def _rows(pool: PagePool, load: Load) -> list[Row]:
    rng, caches = np.random.default_rng(0), Caches(pool)
    noise = rng.random((load.rows, load.tokens - load.prompt))
    vocabulary = SHAPES[load.shape].vocabulary
    rows = [Row(rng.integers(0, vocabulary, load.prompt).tolist(), own.tolist(), 1.0) for own in noise]
    for number, row in enumerate(rows):
        if caches.begin(number, row) != "begun":
            raise RuntimeError(f"no pages for row {number} of {load.rows}")
    return rows


def _advance(decoder: Decoder, rows: Sequence[Row], passes: int) -> None:
    for _ in range(passes):
        if decoder.advance(rows):
            raise RuntimeError("a reply ended, and passes are of fewer rows than they should be")
