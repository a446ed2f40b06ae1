"""Peak memory of a GPU, next to the prediction made before the run.

The predictions are those of a run's start: an update's by ``update_memory``, and what the engine draws with by
``training_bytes`` and ``cache_bytes``. Measured are tensors at their peak, while the learner makes an update and while
the engine draws next to it.
"""

import asyncio
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from benchmarks.gpu_kit.cases import Case, Kit
from benchmarks.gpu_kit.device import Device
from benchmarks.gpu_kit.items.learner import RANK, Setting, learner_of
from benchmarks.gpu_kit.measurement_log import Figures
from benchmarks.kit.conversations import conversations
from manyturn.agents.engine.card.device_memory import training_bytes
from manyturn.agents.engine.decoding.memory import cache_bytes
from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.cli.hardware_checks import hardware
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.memory_estimate import update_memory

_DRAWING = {"at least": 0.9, "at most": 1.1}  # measured over predicted


@dataclass(frozen=True)
class Drawing:
    """Work of the engine next to the learner.

    Attributes:
        cache_gb: for keys and values.
        requests, prompt, reply: how many there are, and tokens of each.
    """

    cache_gb: float
    requests: int
    prompt: int
    reply: int


SETTINGS = (
    Setting("1.5B", "qwen2.5-1.5b", 8192),
    Setting("1.5B, adapters", "qwen2.5-1.5b", 8192, rank=RANK),
    Setting("1.5B, recomputed, a reference policy", "qwen2.5-1.5b", 16384, recompute=True, reference=True),
)
_TOY, _LENGTH, _ROWS = Setting("toy", "toy", 64), 2048, 8


def cases(kit: Kit) -> list[Case]:
    drawing = Drawing(0.001, 3, 20, 4) if kit.toy else Drawing(8.0, 64, 1024, 32)
    doctor = Case("what manyturn doctor says", lambda: {line.subject: line.text for line in hardware()})
    rows = (2, 40) if kit.toy else (_ROWS, _LENGTH)
    settings = (_TOY,) if kit.toy else SETTINGS
    return [*(Case(s.name, partial(peaks, kit.device, s, drawing, rows)) for s in settings), doctor]


def peaks(device: Device, setting: Setting, drawing: Drawing, rows: tuple[int, int]) -> Figures:
    """Bytes at the peak of an update, and of drawing, with their predictions.

    Args:
        rows: how many sequences are learnt from, and tokens of each.
    """
    with learner_of(device, setting) as learner:
        model, lora = learner.model, bool(setting.rank)
        counts = [p.numel() for p in model.parameters()]
        trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
        predicted = training_bytes(sum(counts), trained, on_gpu=device.on_gpu)
        context = EngineContext(model, frozenset(), lora, max_context=drawing.prompt + drawing.reply)
        config = TransformersConfig(cache_gb=drawing.cache_gb, max_batch=drawing.requests)
        cache = cache_bytes(context, drawing.cache_gb, drawing.requests, torch.bfloat16)
        engine = build_engine(config, context)
        learning = asyncio.run(_updates(device, rows, learner, engine))
        drawn = asyncio.run(_draws(device, learner, engine, drawing))
        copied = 0 if lora or not device.on_gpu else 2 * sum(counts)  # of the weights, in bfloat16, for the engine
        updating = update_memory(learner, rows[1]).peak + copied
        share = drawn / (predicted + cache)
        return {
            "learning_predicted_gb": updating / 1e9,
            "learning_gb": learning / 1e9,
            "learning_over_predicted": learning / updating,
            "drawing_predicted_gb": (predicted + cache) / 1e9,
            "drawing_gb": drawn / 1e9,
            "drawing_over_predicted": share,
            **({"ok": _DRAWING["at least"] <= share <= _DRAWING["at most"]} if device.on_gpu else {}),
        }


async def _updates(device: Device, rows: tuple[int, int], learner: Learner, engine: Engine) -> float:
    """Peak of the second update; the engine sleeps, as it does during updates."""
    samples = conversations(*rows, learner.model.config.vocab_size)
    credit_T = np.random.default_rng(1).standard_normal(int(sum(sample.reply_mask.sum() for sample in samples)))
    learner.begin_reinforcement()
    await engine.sleep()
    for number in range(2):  # the first one makes AdamW's moments
        device.forget_peak()
        learner.learn(learner.read(samples), credit_T, 1.0, (0, number))
    return device.peak()


async def _draws(device: Device, learner: Learner, engine: Engine, drawing: Drawing) -> float:
    """Peak while the engine draws with the learner's weights next to it."""
    await engine.load(ModuleWeights(learner.model), learner.updates)
    await engine.wake()
    device.forget_peak()
    rng = np.random.default_rng(0)
    sampling, vocabulary = Sampling(max_tokens=drawing.reply), engine.vocabulary

    async def one(number: int, prompt: list[int]) -> None:
        key = EpisodeKey(0, "gpu", str(number), 0)
        engine.open(key)
        await engine.generate(key, 0, prompt, sampling)
        engine.close(key)

    prompts = [rng.integers(0, vocabulary, drawing.prompt).tolist() for _ in range(drawing.requests)]
    try:
        await asyncio.gather(*(one(number, prompt) for number, prompt in enumerate(prompts)))
        return device.peak()
    finally:
        await engine.shutdown()
