"""Whether a GPU computes what a CPU computes, within bounds that are stated.

The reference is the same code on the CPU in float64. Compared are the log-probabilities and entropies of what was said,
the gradients of a loss in both, and the figures of an update of the learner. Then an engine draws on the device, and
the learner judges the same tokens: in float32, in bfloat16 as runs have it, and with adapters.

Bounds, as ||found - reference|| / ||reference|| unless said otherwise: float32 has 24 bits, and sums over hundreds of
numbers in 30 layers leave about 1e-5 of them; we allow ten times that. bfloat16 has 8 bits, 4e-3 in each operation; a
gradient keeps about 2e-2, and we allow 1e-1. Engine and learner: what the alarm of a run allows.
"""

import asyncio
import copy
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np
import torch
from gpu_device import Device
from gpu_items import Figures, Item, Kit
from gpu_learner import conversations, with_adapters
from gpu_shapes import random_model
from transformers import PreTrainedModel

from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.model.torch_models import move
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.correction import mismatch
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.forward import Reader, read
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import Sample, at_said

BOUNDS = {
    "float32": {"logprob": 1e-4, "entropy": 1e-4, "gradient": 1e-4, "worst_gradient": 1e-3},
    "bfloat16": {"logprob": 2e-2, "entropy": 2e-2, "gradient": 1e-1, "worst_gradient": 3e-1},
}
_UPDATE = 5e-2  # relative, of each figure
_GAP = {
    "float32": {"engine_ratio_p99": 1.01, "engine_ratio_max": 1.1},
    "bfloat16": {"engine_ratio_p99": 1.5, "engine_kl": 0.01},
}
_SPREAD = 0.05  # of the weights, so that probabilities differ from each other


def items(kit: Kit) -> list[Item]:
    device, shape = kit.device, "toy" if kit.toy else "smollm2-135m"
    kinds = ("float32", "bfloat16")
    return [
        *(Item(f"gradients, {kind}", 90, partial(gradients, device, shape, kind)) for kind in kinds),
        Item("update, bfloat16", 60, partial(update, device, shape)),
        *(Item(f"engine and learner, {kind}", 60, partial(gap, device, shape, kind)) for kind in kinds),
        Item("engine and learner, adapters", 60, partial(gap, device, shape, "bfloat16", rank=16)),
    ]


def judged(found: dict[str, float], bounds: dict[str, float]) -> Figures:
    """Figures with their bounds, and whether they keep them; a NaN keeps none."""
    return {**found, "bounds": bounds, "ok": all(found[name] <= most for name, most in bounds.items())}


def computing(device: Device, kind: str) -> AbstractContextManager[object]:
    """The precision of a forward pass over float32 weights; bfloat16 is what ``forward.precision`` takes on a GPU."""
    return torch.autocast(device.torch.type, torch.bfloat16) if kind == "bfloat16" else nullcontext()


def _both(device: Device, shape: str) -> tuple[PreTrainedModel, PreTrainedModel, list[Sample]]:
    """One model on the CPU in float64 and on the device, and what both are given."""
    exact = random_model(shape, torch.device("cpu"), spread=_SPREAD)
    samples = conversations(4, 24 if shape == "toy" else 256, exact.config.vocab_size)
    tested = copy.deepcopy(exact)
    move(tested, device.torch)
    move(exact, torch.float64)
    return exact, tested, samples


def gradients(device: Device, shape: str, kind: str) -> Figures:
    """Log-probabilities, entropies and gradients against the CPU's in float64."""
    exact, tested, samples = _both(device, shape)
    expected = _measured(exact, samples)
    with computing(device, kind):
        found = _measured(tested, samples)
    apart = {name: _apart(found[name], expected[name]) for name in ("logprob", "entropy", "gradient")}
    each = [_apart(a, b) for a, b in zip(found["each"], expected["each"], strict=True)]
    return judged({**apart, "worst_gradient": max(each)}, BOUNDS[kind])


def _measured(model: PreTrainedModel, samples: list[Sample]) -> dict[str, torch.Tensor | list[torch.Tensor]]:
    """The reading of some samples and the gradients of a loss of it, on the CPU in float64."""
    reading = read(model, samples, temperature=0.8)
    weight = torch.linspace(-1, 1, int(reading.said.sum()), dtype=torch.float64).to(reading.logprob)
    loss = (weight * reading.logprob[reading.said]).mean() - 0.1 * reading.entropy[reading.said].mean()
    loss.backward()
    each = [p.grad.detach().to("cpu", torch.float64).flatten() for p in model.parameters() if p.grad is not None]
    values = {name: getattr(reading, name)[reading.said].detach() for name in ("logprob", "entropy")}
    return {name: v.to("cpu", torch.float64) for name, v in values.items()} | {
        "each": each,
        "gradient": torch.cat(each),
    }


def _apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def update(device: Device, shape: str) -> Figures:
    """Figures of a learner's two updates in bfloat16 against those of the same updates on the CPU in float64."""
    exact, tested, samples = _both(device, shape)
    expected = _updated(exact, samples)
    with computing(device, "bfloat16"):
        found = _updated(tested, samples)
    apart = {name: abs(found[name] - value) / abs(value) for name, value in expected.items()}
    return judged(apart, dict.fromkeys(expected, _UPDATE))


def _updated(model: PreTrainedModel, samples: list[Sample]) -> dict[str, float]:
    config = LearnerConfig(lr=1e-4, minibatch=2, micro_tokens=512)
    learner = Learner(LanguageModel(model, None, None), config, ClipConfig(), 1.0)  # type: ignore[arg-type]  # no text
    said = int(sum(sample.said.sum() for sample in samples))
    means = learner.learn(learner.read(samples), np.linspace(-1, 1, said), 1.0, (0,))
    return {name: float(means[name] or 0.0) for name in ("grad_norm", "entropy")}


def gap(device: Device, shape: str, kind: str, rank: int = 0) -> Figures:
    """How differently engine and learner judge the tokens that the engine drew."""
    on_gpu_as_runs = kind == "bfloat16" and device.on_gpu
    dtype = torch.bfloat16 if rank and on_gpu_as_runs else torch.float32
    model = random_model(shape, device.torch, dtype, spread=_SPREAD)
    if rank:
        model = with_adapters(model, rank)
        _shake(model)
    if kind == "float32":
        engine = TransformersEngine(model, frozenset(), max_batch=16)
    else:
        engine = build_engine(TransformersConfig(), EngineContext(model, frozenset(), bool(rank), max_context=256))
    samples = asyncio.run(_drawn(engine, 2 if shape == "toy" else 16))
    if kind == "float32":
        with torch.no_grad():
            judged_by = read(model, samples, temperature=1.0)
        rows = [row[: len(sample)].cpu() for row, sample in zip(judged_by.logprob, samples, strict=True)]
    else:
        rows = Reader(model, PassBudget(4096), 1.0).over(samples, {"logprob": lambda reading: reading.logprob})[
            "logprob"
        ]
    ratio_T = at_said(samples, rows) - at_said(samples, [sample.engine_logprob for sample in samples])
    return judged(mismatch(ratio_T), _GAP[kind])


@torch.no_grad()
def _shake(model: torch.nn.Module) -> None:
    """Adapters that change something; new ones are zero."""
    for name, weights in model.named_parameters():
        if "lora_B" in name:
            weights.normal_(0, _SPREAD)


async def _drawn(engine: Engine, episodes: int) -> list[Sample]:
    """Episodes of two turns, of which half have the same beginning."""
    rng = np.random.default_rng(0)
    begins = [rng.integers(0, engine.vocabulary, 40).tolist() for _ in range(2)]

    async def episode(number: int) -> Sample:
        key = EpisodeKey(0, "gpu", str(number), 0)
        more = np.random.default_rng(number).integers(0, engine.vocabulary, 5 + number).tolist()
        ids, said, logprob = [*begins[number % 2], *more], [0] * (40 + len(more)), [0.0] * (40 + len(more))
        engine.open(key)
        for turn in range(2):
            reply = await engine.generate(key, turn, ids, Sampling(max_tokens=32))
            ids, said, logprob = ids + reply.ids, said + [1] * len(reply.ids), logprob + reply.logprobs
            ids, said, logprob = ids + more, said + [0] * len(more), logprob + [0.0] * len(more)
        engine.close(key)
        mask = np.array(said, bool)
        return Sample(number, np.array(ids), mask, np.array(logprob), np.where(mask, 0, -1))

    try:
        return list(await asyncio.gather(*(episode(number) for number in range(episodes))))
    finally:
        await engine.shutdown()
