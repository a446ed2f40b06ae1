"""What adapters on the upper layers save on a CPU, and what is saved more where frozen layers are computed once.

    python benchmarks/frozen_layers.py                 a decoder of SmolLM2-135M's shape, random weights
    python benchmarks/frozen_layers.py --toy --out toy.json

Speed does not depend on the weights. Rows of the table: adapters on all layers, on the upper half and on the upper
quarter, the latter two with and without states that are kept. A figure is CPU seconds on one thread for what a step
has: the pass before the updates and ``--epochs`` updates over the same episodes; ``update`` is one of those alone.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from provenance import RESULTS, origin, write
from transformers import LlamaConfig, LlamaForCausalLM

from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.envs.contract.keys import generator
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import Sample

OUT = RESULTS / "frozen_layers.json"
SMOLLM2: dict[str, Any] = {
    "vocab_size": 49_152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
}
TOY: dict[str, Any] = {**SMOLLM2, "vocab_size": 512, "hidden_size": 72, "intermediate_size": 96, "num_hidden_layers": 4}
EPISODES, TOKENS, REPLY, TURNS = 8, 128, 6, 4


def language_of(shape: dict[str, Any]) -> LanguageModel:
    """A decoder of that shape; the tokenizer is never asked."""
    found = build_tiny(["word"], 0, TOKENS, torch.device("cpu"), width=8, layers=1, heads=1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found.model = LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=True, pad_token_id=None))
    return found


def episodes(vocabulary: int) -> list[Sample]:
    """Episodes of random tokens: a reply at the end of each of a few turns."""
    rng, found = generator("frozen layers"), list[Sample]()
    place = np.arange(TOKENS) % (TOKENS // TURNS)
    reply = np.where(place >= TOKENS // TURNS - REPLY, np.arange(TOKENS) // (TOKENS // TURNS), -1)
    for episode in range(EPISODES):
        ids = rng.integers(0, vocabulary, TOKENS)
        found.append(Sample(episode, ids, reply >= 0, np.zeros(TOKENS), reply, TURNS))
    return found


def measured(shape: dict[str, Any], layers: tuple[int, int] | None, states_gb: float, epochs: int) -> dict[str, Any]:
    """CPU seconds of a step's passes, after one step that is not timed."""
    options: dict[str, Any] = {"lora_layers": layers, "states_gb": states_gb} if layers else {}
    config = LearnerConfig(lora_rank=16, minibatch=EPISODES, epochs=epochs, micro_tokens=1024, **options)
    language, samples = language_of(shape), episodes(shape["vocab_size"])
    add_adapters(language, config, seed=0)
    learner = Learner(language, config, ClipConfig(), 1.0)
    learner.begin_reinforcement()
    advantage_T = generator("advantages").normal(size=sum(int(sample.said.sum()) for sample in samples))
    seconds, passes = list[float](), list[float]()
    for step in range(2):
        began = time.process_time()
        reading = learner.read(samples)
        reading.logprob  # noqa: B018  # the pass before the updates
        middle = time.process_time()
        learner.learn(reading, advantage_T, 1.0, (step,))
        seconds.append(time.process_time() - began)
        passes.append(time.process_time() - middle)
    tokens = EPISODES * TOKENS
    return {
        "layers": list(layers) if layers else None,
        "kept": bool(layers and states_gb),
        "step_seconds": round(seconds[-1], 3),
        "update_seconds": round(passes[-1] / epochs, 3),
        "update_tokens_per_second": round(tokens * epochs / passes[-1], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--toy", action="store_true", help="a tiny shape, to see that it runs")
    parser.add_argument("--epochs", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    about, shape = origin(asked.out, packages=("torch", "transformers", "peft")), TOY if asked.toy else SMOLLM2
    count = shape["num_hidden_layers"]
    upper = [(count // 2, count), (count - max(1, count // 4), count)]
    rows = [measured(shape, None, 0, asked.epochs)]
    rows += [measured(shape, layers, gb, asked.epochs) for layers in upper for gb in (0.0, 1.0)]
    result = {"shape": shape, "episodes": EPISODES, "tokens": TOKENS, "epochs": asked.epochs, "rows": rows}
    write(asked.out, about, result)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
