"""Agreement of a GPU with a CPU, within bounds that are stated.

The reference is the same code on a CPU in float64, computed beforehand; see ``reference.py``. Compared are the
log-probabilities and entropies of what was said, the gradients of a loss in both, and the figures of an update of the
learner. Then an engine draws on the device, and the learner judges the same tokens: in float32, in bfloat16 as runs
have it, and with adapters. The attention of a token tree is compared by itself too: ``tree_attention.py``.

Bounds, as ||ours - reference|| / ||reference|| unless said otherwise: float32 has 24 bits, and sums over hundreds of
numbers in 30 layers leave about 1e-5 of them; we allow ten times that. bfloat16 has 8 bits, 4e-3 in each operation; a
gradient keeps about 2e-2, and we allow 1e-1. Engine and learner: what the alarm of a run allows.
"""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np
import torch

from benchmarks.gpu_kit import tree_attention
from benchmarks.gpu_kit.carried import reference
from benchmarks.gpu_kit.cases import Case, Kit
from benchmarks.gpu_kit.device import Device
from benchmarks.gpu_kit.measurement_log import Figures
from benchmarks.gpu_kit.random_models import random_model, with_adapters
from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.model_internals import move
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.trainers.learn.objective.rollout_correction import mismatch
from manyturn.trainers.learn.passes.forward import Reader, read, recompute_activations
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import Sample, at_replies
from manyturn.trainers.learn.passes.trie.packing import Packing

BOUNDS = {
    "float32": {"logprob": 1e-4, "entropy": 1e-4, "gradient": 1e-4, "worst_gradient": 1e-3},
    "bfloat16": {"logprob": 2e-2, "entropy": 2e-2, "gradient": 1e-1, "worst_gradient": 3e-1},
}
_UPDATE = 5e-2  # relative, of each figure
_GAP = {
    "float32": {"engine_ratio_p99": 1.01, "engine_ratio_max": 1.1},
    "bfloat16": {"engine_ratio_p99": 1.5, "engine_kl": 0.01},
}
_RANK = 16


def cases(kit: Kit) -> list[Case]:
    return [
        Case("gradients, padding, float32", partial(gradients, kit, "padding", "float32")),
        Case("gradients, trie, bfloat16, recomputed", partial(gradients, kit, "trie", "bfloat16", recompute=True)),
        Case("attention of a tree in one call", partial(tree_attention.compared, kit)),
        Case("engine and learner, bfloat16", partial(gap, kit, "bfloat16")),
        Case("engine and learner, adapters", partial(gap, kit, "bfloat16", rank=_RANK)),
        Case("update, bfloat16", partial(update, kit)),
        Case("gradients, trie, float32", partial(gradients, kit, "trie", "float32")),
        Case("gradients, padding, bfloat16", partial(gradients, kit, "padding", "bfloat16")),
        Case("engine and learner, float32", partial(gap, kit, "float32")),
    ]


def judged(distances: dict[str, float], bounds: dict[str, float]) -> Figures:
    """Figures with their bounds, and whether they keep them; a NaN keeps none."""
    return {**distances, "bounds": bounds, "ok": all(distances[name] <= most for name, most in bounds.items())}


def computing(device: Device, kind: str) -> AbstractContextManager[object]:
    """The precision of a forward pass over float32 weights; bfloat16 is what ``forward.precision`` takes on a GPU."""
    return torch.autocast(device.torch.type, torch.bfloat16) if kind == "bfloat16" else nullcontext()


def gradients(kit: Kit, packing: Packing, kind: str, recompute: bool = False) -> Figures:
    """Log-probabilities, entropies and gradients against the CPU's in float64."""
    model, rows, numbers = reference.load(kit.carried, kit.toy)
    move(model, kit.device.torch)
    if recompute:
        recompute_activations(model)
    with computing(kit.device, kind):
        return judged(reference.distance(reference.measured(model, rows, packing), numbers), BOUNDS[kind])


def update(kit: Kit) -> Figures:
    """Figures of a learner's two updates in bfloat16 against those of the same updates on the CPU in float64."""
    model, rows, numbers = reference.load(kit.carried, kit.toy)
    move(model, kit.device.torch)
    with computing(kit.device, "bfloat16"):
        ours = reference.updated(model, rows)
    theirs = {name: float(numbers[f"update.{name}"]) for name in ours}
    return judged(
        {name: abs(ours[name] - value) / abs(value) for name, value in theirs.items()}, dict.fromkeys(ours, _UPDATE)
    )


def gap(kit: Kit, kind: str, rank: int = 0) -> Figures:
    """Difference of engine and learner in the log-probabilities of tokens that the engine drew."""
    device = kit.device
    dtype = torch.bfloat16 if rank and kind == "bfloat16" and device.on_gpu else torch.float32
    model = random_model(reference.shape_of(kit.toy), device.torch, dtype, spread=reference.SPREAD)
    if rank:
        model = with_adapters(model, rank)
        _shake(model)
    if kind == "float32":
        engine: Engine = TransformersEngine(model, frozenset(), max_batch=16)
    else:
        engine = build_engine(TransformersConfig(), EngineContext(model, frozenset(), bool(rank), max_context=256))
    samples = asyncio.run(_drawn(engine, 2 if kit.toy else 16))
    if kind == "float32":
        with torch.no_grad():
            reading = read(model, samples, temperature=1.0)
        rows = [row[: len(sample)].cpu() for row, sample in zip(reading.logprob, samples, strict=True)]
    else:
        reader = Reader(model, PassBudget(4096), 1.0)
        rows = reader.over(samples, {"logprob": lambda reading: reading.logprob})["logprob"]
    ratio_T = at_replies(samples, rows) - at_replies(samples, [sample.engine_logprob for sample in samples])
    return judged(mismatch(ratio_T), _GAP[kind])


@torch.no_grad()
def _shake(model: torch.nn.Module) -> None:
    """Adapters that change something; new ones are zero."""
    for name, weights in model.named_parameters():
        if "lora_B" in name:
            weights.normal_(0, reference.SPREAD)


async def _drawn(engine: Engine, episodes: int) -> list[Sample]:
    """Episodes of two turns, of which half have the same beginning."""
    rng = np.random.default_rng(0)
    begins = [rng.integers(0, engine.vocabulary, 40).tolist() for _ in range(2)]

    async def episode(number: int) -> Sample:
        key = EpisodeKey(0, "gpu", str(number), 0)
        more = np.random.default_rng(number).integers(0, engine.vocabulary, 5 + number).tolist()
        ids, mask, logprob = [*begins[number % 2], *more], [0] * (40 + len(more)), [0.0] * (40 + len(more))
        engine.open(key)
        for turn in range(2):
            reply = await engine.generate(key, turn, ids, Sampling(max_tokens=32))
            ids, mask, logprob = ids + reply.ids, mask + [1] * len(reply.ids), logprob + reply.logprobs
            ids, mask, logprob = ids + more, mask + [0] * len(more), logprob + [0.0] * len(more)
        engine.close(key)
        reply_mask = np.array(mask, bool)
        return Sample(number, np.array(ids), reply_mask, np.array(logprob), np.where(reply_mask, 0, -1))

    try:
        return list(await asyncio.gather(*(episode(number) for number in range(episodes))))
    finally:
        await engine.shutdown()
