"""Speed of the learner on rows of Household, as a share of what the device can do.

Rows are a minibatch of the recipe: sixteen episodes of 50 turns. Read: a pass for the log-probabilities before the
updates. Updated: forward and backward passes over all rows and one step of AdamW, by ``Learner.learn`` itself. Weights
are random, which costs the same.

``mfu`` counts what the model needs where common beginnings are there once; ``unshared_mfu`` what it would need if each
row were computed by itself, which is what a learner without a trie is measured by.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from benchmarks.gpu_kit.carried import household_rows
from benchmarks.gpu_kit.cases import Case, Kit
from benchmarks.gpu_kit.device import Device
from benchmarks.gpu_kit.flops import of_rows, of_tree
from benchmarks.gpu_kit.measurement_log import Figures
from benchmarks.gpu_kit.profile import profiled
from benchmarks.gpu_kit.random_models import random_model, with_adapters
from manyturn.agents.model.language_model import LanguageModel
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.kl import KlConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.learn.passes.trie.packing import Packing
from manyturn.trainers.learn.passes.trie.tree import Tree

RANK = 16


@dataclass(frozen=True)
class Setting:
    """Setting of a measured update.

    Attributes:
        micro_tokens: of one pass.
        recompute: whether activations are computed again in the backward pass.
        rank: of adapters; 0: all weights are learnt.
        reference: whether the loss has a KL term, for which the first weights are kept.
        share: of the rows.
        is_profiled: whether an update of one pass is profiled too.
    """

    name: str
    shape: str
    micro_tokens: int
    recompute: bool = False
    rank: int = 0
    reference: bool = False
    packing: Packing = "auto"
    share: float = 1.0
    is_profiled: bool = False


_LARGE = "qwen2.5-1.5b"
SETTINGS = (
    Setting("1.5B, recomputed, passes of 32768", _LARGE, 32768, recompute=True, is_profiled=True),
    Setting("1.5B, adapters, recomputed", _LARGE, 32768, recompute=True, rank=RANK, share=0.5),
    Setting("1.5B, passes of 8192", _LARGE, 8192, share=0.5),
    Setting("1.5B, recomputed, packed without a trie", _LARGE, 32768, recompute=True, packing="packed", share=0.25),
)
TOY = (
    Setting("toy, recomputed", "toy", 256, recompute=True, is_profiled=True),
    Setting("toy, adapters", "toy", 256, rank=4),
)


def cases(kit: Kit) -> list[Case]:
    return [Case(s.name, partial(speed, kit, s)) for s in (TOY if kit.toy else SETTINGS)]


def speed(kit: Kit, setting: Setting) -> Figures:
    """Tokens per second, and the share of the device's rate that the model's operations come to."""
    device, rows = kit.device, household_rows.load(kit.carried, kit.toy)
    rows = rows[: max(1, int(setting.share * len(rows)))]
    with learner_of(device, setting) as learner:
        _update(learner, rows[: max(1, len(rows) // 8)], 0)  # kernels are chosen, and AdamW's moments made
        device.forget_peak()
        with device.timed() as read:
            step = learner.read(rows)
            assert len(step.logprob) == len(rows)
        with device.timed() as updated:
            learner.learn(step, _credit(rows), 1.0, (0, 1))
        peak = device.peak() / 1e9
        few = rows[: max(1, int(len(rows) * setting.micro_tokens / len(_tree(rows).ids)))]
        seen = profiled(device, lambda: _update(learner, few, 2), 1) if setting.is_profiled else {}
        needs = {kind: _needs(learner, rows, setting, kind) for kind in ("mfu", "unshared_mfu")}
        took = {"read": read[0], "update": updated[0]}
        ceiling = device.matmul_rate(64 if kit.toy else 8192)
        return {
            "rows": len(rows),
            "tokens": sum(map(len, rows)),
            "nodes": len(_tree(rows).ids),
            "reply_tokens": int(sum(row.reply_mask.sum() for row in rows)),
            "micro_tokens": setting.micro_tokens,
            **{f"{name}_seconds": seconds for name, seconds in took.items()},
            **{f"{name}_tokens_per_s": sum(map(len, rows)) / seconds for name, seconds in took.items()},
            **_shares(device, took, needs, ceiling),
            "peak_gb": peak,
            **{f"profiled {name}": value for name, value in seen.items()},
        }


def _shares(
    device: Device, took: dict[str, float], needs: dict[str, tuple[float, float]], ceiling: float
) -> dict[str, float]:
    """Of the rate on the data sheet where we know it, and of that of a product of two large matrices."""
    shares = dict[str, float]()
    for kind, operations in needs.items():
        for (name, seconds), needed in zip(took.items(), operations, strict=True):
            rate = needed / seconds
            if device.peak_rate is not None:
                shares[f"{name}_{kind}"] = rate / device.peak_rate
            if kind == "mfu":
                shares[f"{name}_share_of_product"] = rate / ceiling
    return shares


def _needs(learner: Learner, rows: Sequence[Sample], setting: Setting, kind: str) -> tuple[float, float]:
    """Operations of a reading, and of an update."""
    replies, config = int(sum(row.reply_mask.sum() for row in rows)), learner.model.config
    if kind == "mfu" and setting.packing in ("auto", "trie"):
        needs = of_tree(config, _tree(rows).depth, replies)
    else:
        needs = of_rows(config, [len(row) for row in rows], replies)
    return needs.forward, needs.update(bool(setting.rank))


def _tree(rows: Sequence[Sample]) -> Tree:
    return Tree.of([row.ids for row in rows], least=1)


def _update(learner: Learner, rows: Sequence[Sample], number: int) -> None:
    learner.learn(learner.read(rows), _credit(rows), 1.0, (0, number))


def _credit(rows: Sequence[Sample]) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(int(sum(row.reply_mask.sum() for row in rows)))


@contextmanager
def learner_of(device: Device, setting: Setting) -> Iterator[Learner]:
    """A learner of a shape; the device has its memory back after it."""
    dtype = torch.bfloat16 if setting.rank and device.on_gpu else torch.float32
    model = random_model(setting.shape, device.torch, dtype)
    if setting.rank:
        model = with_adapters(model, setting.rank)
    config = LearnerConfig(
        lr=1e-6,
        minibatch=10**6,
        micro_tokens=setting.micro_tokens,
        lora_rank=setting.rank,
        packing=setting.packing,
        gradient_checkpointing=setting.recompute,
    )
    objective = ClipConfig(kl=KlConfig(coef=0.01) if setting.reference else None)
    learner = Learner(LanguageModel(model, None, None), config, objective, 1.0)  # type: ignore[arg-type]  # no text
    learner.begin_reinforcement()
    try:
        yield learner
    finally:
        del learner, model
        gc.collect()
        device.clear()
