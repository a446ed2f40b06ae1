"""Peak memory of an update, next to its prediction without making one.

    python -m benchmarks.speed.learner.memory
    python -m benchmarks.speed.learner.memory --toy --out toy.json

Each setting is a fresh process on the CPU: it makes a model of random weights and a learner, and two updates of several
passes from conversations of random tokens. Measured is what the process had at most, beyond what it had before the
model. Predicted is the ``peak`` of ``update_memory``, by which the start of a run refuses what cannot fit.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from benchmarks.kit.conversations import conversations
from benchmarks.kit.memory import peak_mb, resident_mb
from benchmarks.kit.process import measure_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.model.language_model import LanguageModel
from manyturn.trainers.learn.heads.head_config import ValueHeadConfig
from manyturn.trainers.learn.heads.heads import HeadTargets
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.memory_estimate import update_memory
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig

OUT = RESULTS / "learner_memory.json"
SETTINGS: dict[str, dict[str, Any]] = {
    "all weights": {},
    "recomputed": {"gradient_checkpointing": True, "micro_tokens": 8192},
    "adapters": {"lora_rank": 16},
    "adapters on the upper half": {"lora_rank": 16, "lora_layers": (4, 8)},
    "a reference policy": {"kl": {"coef": 0.01}},
    "a critic of its own": {"critic": True, "micro_tokens": 2048},
    "padded": {"packing": "padding"},
}
LENGTH, ROWS = 512, 32
# The C library keeps what is freed in small pieces, and gives back only what it has mapped by itself.
_GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_TOP_PAD_": "0"}
_LAYERS = 8


def shape(toy: bool) -> Qwen2Config:
    """Of a small model with a large vocabulary, as small models have."""
    width = 32 if toy else 384
    return Qwen2Config(
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=500 if toy else 32_000,
    )


def learner_of(setting: dict[str, Any], toy: bool) -> Learner:
    """A learner of random weights."""
    options = {"micro_tokens": 4096, "minibatch": ROWS, "lr": 1e-6, **setting}
    kl, critic = options.pop("kl", None), options.pop("critic", False)
    config = LearnerConfig.model_validate(options)
    language = LanguageModel(AutoModelForCausalLM.from_config(shape(toy)), None, None)  # type: ignore[arg-type]
    if config.lora_rank:
        add_adapters(language, config, seed=0)
    heads = [ValueHeadConfig.model_validate({"body": "own"})] if critic else []
    return Learner(language, config, ClipConfig.model_validate({"kl": kl}), 1.0, heads)


def measured(setting: dict[str, Any], toy: bool) -> dict[str, float]:
    """Megabytes at the peak of two updates, and what was predicted of them."""
    torch.set_num_threads(1)
    torch.ones(256, 256).matmul(torch.ones(256, 256))
    before = resident_mb()
    learner = learner_of(setting, toy)
    learner.begin_reinforcement()
    samples = conversations(ROWS, LENGTH, shape(toy).vocab_size)
    replies = int(sum(sample.reply_mask.sum() for sample in samples))
    credit_T = np.random.default_rng(1).standard_normal(replies)
    for number in range(2):  # the first one makes AdamW's moments
        learner.learn(learner.read(samples), credit_T, 1.0, (0, number), targets=HeadTargets(credit_T))
    peak = peak_mb() - before
    memory = update_memory(learner, LENGTH)
    kept_states = learner.frozen.bytes if learner.frozen else 0
    predicted = (memory.peak + kept_states) / 1e6
    return {
        "kept_mb": memory.held / 1e6,
        "passing_mb": memory.passing / 1e6,
        "states_mb": kept_states / 1e6,
        "predicted_mb": predicted,
        "measured_mb": peak,
        "measured_over_predicted": peak / predicted,
    }


def apart(name: str, toy: bool) -> dict[str, float]:
    """A measurement in a process of its own."""
    figures = measure_apart(__file__, "--one", name, *["--toy"] * toy, environment=_GIVES_BACK)
    return {key: float(f"{value:.4g}") for key, value in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="a model so small that only the code is tested")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", choices=SETTINGS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(SETTINGS[options.one], options.toy)))
        return
    about = origin(options.out, ("torch", "transformers"))
    rows = []
    for name in SETTINGS:
        rows.append({"setting": name, **apart(name, options.toy)})
        print(rows[-1], flush=True)
    write(options.out, about, {"sequences": ROWS, "tokens_of_each": LENGTH, "rows": rows})


if __name__ == "__main__":
    main()
