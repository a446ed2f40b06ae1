"""How fast the learner reads and updates on a GPU, as a share of what the device can do.

Rows are conversations of one length: a share of the tokens was said, in replies, and the rest observed. Read: a pass
for the log-probabilities before the updates. Updated: forward and backward passes over all rows and one step of AdamW,
by ``Learner.learn`` itself. Weights are random, which costs the same.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from gpu_device import Device
from gpu_flops import forward_flops, update_flops
from gpu_items import Figures, Item, Kit
from gpu_shapes import random_model
from transformers import PreTrainedModel

from manyturn.agents.model.language_model import LanguageModel
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.kl import KlConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import Sample

_REPLY, _SAID = 64, 0.25  # tokens of a reply; share of all tokens that were said
RANK = 16


@dataclass(frozen=True)
class Setting:
    """What is learnt, and from how much.

    Attributes:
        rows, length: sequences, and tokens of each.
        micro_tokens: of one pass.
        recompute: whether activations are computed again in the backward pass.
        rank: of adapters; 0: all weights are learnt.
        reference: whether the loss has a KL term, for which the first weights are kept.
        seconds: that it takes on an H100 at most.
    """

    name: str
    shape: str
    rows: int
    length: int
    micro_tokens: int
    recompute: bool = False
    rank: int = 0
    reference: bool = False
    seconds: float = 60.0


SETTINGS = (
    Setting("0.5B, 16 x 2048", "qwen2.5-0.5b", 16, 2048, 16384),
    Setting("1.5B, 16 x 2048", "qwen2.5-1.5b", 16, 2048, 8192),
    Setting("1.5B, 16 x 2048, recomputed", "qwen2.5-1.5b", 16, 2048, 32768, True),
    Setting("1.5B, 4 x 8192, recomputed", "qwen2.5-1.5b", 4, 8192, 32768, True),
    Setting("1.5B, 16 x 2048, adapters", "qwen2.5-1.5b", 16, 2048, 8192, False, RANK),
)
TOY = (Setting("toy, recomputed, adapters", "toy", 2, 40, 64, True, RANK),)


def items(kit: Kit) -> list[Item]:
    """What the device can do at all, then each setting."""
    device, size = kit.device, 64 if kit.toy else 8192
    ceiling = Item("product of matrices", 15, lambda: {"flops_per_s": device.matmul_rate(size), "size": size})
    settings = TOY if kit.toy else SETTINGS
    return [ceiling, *(Item(s.name, s.seconds, lambda s=s: speed(device, s, size)) for s in settings)]


def speed(device: Device, setting: Setting, size: int) -> Figures:
    """Tokens per second, and the share of the device's rate that the model's operations come to."""
    with learner_of(device, setting) as learner:
        samples = conversations(setting.rows, setting.length, learner.model.config.vocab_size)
        said = np.concatenate([sample.said for sample in samples])
        credit_T = np.random.default_rng(1).standard_normal(int(said.sum()))

        def reading() -> None:
            assert len(learner.read(samples).logprob) == len(samples)

        read_s = device.seconds(reading)
        device.forget_peak()
        update_s = _update_seconds(device, learner, samples, credit_T)
        tokens, config = len(said), learner.model.config
        lengths = [len(sample) for sample in samples]
        needed = update_flops(config, lengths, int(said.sum()), bool(setting.rank))
        rates = {"read": forward_flops(config, lengths, int(said.sum())) / read_s, "update": needed / update_s}
        return {
            "rows": setting.rows,
            "length": setting.length,
            "said": int(said.sum()),
            "micro_tokens": setting.micro_tokens,
            "read_tokens_per_s": tokens / read_s,
            "update_tokens_per_s": tokens / update_s,
            "peak_gb": device.peak() / 1e9,
            **_utilisation(device, rates, size),
        }


def _update_seconds(device: Device, learner: Learner, samples: Sequence[Sample], credit_T: np.ndarray) -> float:
    """The median of three updates after one; the reading that each begins with is not in it."""
    found = []
    for number in range(4):
        step = learner.read(samples)
        step.logprob  # noqa: B018  # read now, so that it is not timed
        with device.timed() as took:
            learner.learn(step, credit_T, 1.0, (0, number))
        found.append(took[0])
    return float(np.median(found[1:]))


def _utilisation(device: Device, rates: dict[str, float], size: int) -> dict[str, float]:
    found = {f"{name}_flops_per_s": rate for name, rate in rates.items()}
    ceiling, told = device.matmul_rate(size), device.peak_rate
    found |= {f"{name}_share_of_product": rate / ceiling for name, rate in rates.items()}
    if told is not None:
        found |= {f"{name}_mfu": rate / told for name, rate in rates.items()}
    return found


@contextmanager
def learner_of(device: Device, setting: Setting) -> Iterator[Learner]:
    """A learner of a shape; the device has its memory back after it."""
    dtype = torch.bfloat16 if setting.rank and device.on_gpu else torch.float32
    model = random_model(setting.shape, device.torch, dtype)
    if setting.rank:
        model = with_adapters(model, setting.rank)
    config = LearnerConfig(
        lr=1e-6,
        minibatch=setting.rows,
        micro_tokens=setting.micro_tokens,
        lora_rank=setting.rank,
        gradient_checkpointing=setting.recompute,
    )
    objective = ClipConfig(kl=KlConfig(coef=0.01) if setting.reference else None)
    learner = Learner(LanguageModel(model, None, None), config, objective, 1.0)  # type: ignore[arg-type]  # no text
    try:
        yield learner
    finally:
        del learner, model
        gc.collect()
        device.clear()


def with_adapters(model: PreTrainedModel, rank: int) -> PreTrainedModel:
    """The model with adapters on all its linear layers, as ``learner.lora_rank`` makes them."""
    language = LanguageModel(model, None, None)  # type: ignore[arg-type]  # no text
    add_adapters(language, LearnerConfig(lora_rank=rank), seed=0)
    return language.model


def conversations(rows: int, length: int, vocabulary: int) -> list[Sample]:
    """Episodes of random tokens: observations and replies of one length, in turns."""
    rng, found = np.random.default_rng(0), []
    reply = min(_REPLY, int(length * _SAID))
    turn = round(reply / _SAID)
    for episode in range(rows):
        place = np.arange(length)
        said = place % turn >= turn - reply
        numbers = np.where(said, place // turn, -1)
        logprob = np.where(said, -np.log(vocabulary), 0.0)
        ids = rng.integers(0, vocabulary, length)
        found.append(Sample(episode, ids, said, logprob, numbers, int(numbers.max()) + 1))
    return found
