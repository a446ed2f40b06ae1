"""Success of a ready-made run over seeds: the figures and pictures that README shows.

    python -m benchmarks.runs.recipe_success                  seeds 0, 1 and 2, about fifteen minutes
    python -m benchmarks.runs.recipe_success --recipe household-tiny --folder RUN-FOLDER --jobs 2

Each seed is a run of its own in a fresh process, as a user starts it. Nothing is selected: all seeds are written. With
a folder the same command continues runs that were interrupted.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from safetensors import safe_open

from benchmarks.kit.process import finish_recipe
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.trainers.record.checkpoint import newest_checkpoint
from manyturn.trainers.record.run_folder import read_metrics

Curve = tuple[list[int], list[float]]


def held_out_curve(folder: Path) -> Curve:
    """Steps and success on validation tasks after each of them; empty where the recipe measures none."""
    lines = [line for line in read_metrics(folder) if line["phase"] == "validation"]
    return [line["step"] for line in lines], [line["success"] for line in lines]


def cpu_minutes(summary: dict[str, Any], folder: Path) -> dict[str, float]:
    """Minutes of the processor: of the warm-up, and of the steps, which are all but evaluations and checkpoints."""
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    spent = sum(line["rollout_cpu_seconds"] + line["learn_cpu_seconds"] for line in steps)
    return {"warmup": summary["warmup"].get("cpu_seconds", 0.0) / 60, "steps": spent / 60}


def matrix_rate(size: int = 512, repeats: int = 9) -> float:
    """Median rate at which one core multiplies two square matrices of float32, in operations per second."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        a, b = torch.ones(size, size), torch.ones(size, size)
        seconds = []
        for _ in range(repeats):
            began = time.process_time()
            for _ in range(4):
                torch.matmul(a, b)
            seconds.append((time.process_time() - began) / 4)
    finally:
        torch.set_num_threads(threads)
    return 2 * size**3 / median(seconds)


def layer_weights(file: Path) -> int:
    """Numbers in the matrices of all decoder layers of a saved model."""
    with safe_open(file, framework="numpy") as tensors:
        names = tensors.keys()
        shapes = [tensors.get_slice(name).get_shape() for name in names if ".layers." in name]
    return sum(prod(shape) for shape in shapes if len(shape) == 2)


def speed(folder: Path, rate: float) -> dict[str, float]:
    """Speed of a run's steps by seconds of the processor, and the share of the matrix rate that learning reaches.

    Args:
        folder: of a run that has ended.
        rate: ``matrix_rate``.

    Returns:
        Episodes per second of play, tokens of the updates' sequences per second of learning, and the operations of
        these tokens in the linear layers of the decoder, forward and backward, over what the core could do meanwhile.
        Attention and the output head are left out, and tokens that sequences share are counted in each.
    """
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    play, learn = (sum(line[f"{part}_cpu_seconds"] for line in steps) for part in ("rollout", "learn"))
    episodes, tokens = steps[-1]["played_episodes"], sum(line["trained_tokens"] for line in steps)
    checkpoint, _ = newest_checkpoint(folder / "checkpoints")
    if checkpoint is None:
        raise SystemExit(f"{folder} has no whole checkpoint: remove the folder")
    weights = layer_weights(checkpoint / "model" / "model.safetensors")
    return {
        "episodes_per_play_second": round(episodes / play, 2),
        "tokens_per_learn_second": round(tokens / learn, 1),
        "learn_share_of_matrix_rate": round(6 * weights * tokens / learn / rate, 3),
    }


def draw(runs: Sequence[dict[str, Any]], curves: Sequence[Curve], path: Path) -> None:
    """Held-out success of all seeds: the band of their curves, and each seed before and after with its intervals."""
    seeds = ", ".join(str(run["seed"]) for run in runs)
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    steps = curves[0][0]
    if steps:
        success_NS = np.array([success for _, success in curves])  # a row for each seed
        axes.fill_between(steps, success_NS.min(0), success_NS.max(0), color="#2563eb", alpha=0.2, lw=0)
        axes.plot(steps, success_NS.mean(0), color="#2563eb", lw=2.2, label="validation tasks: mean and range of seeds")
    last = runs[0]["steps"]
    for suffix, face, label in (("", "black", "test tasks, 95 % interval: sampled"), ("_greedy", "white", "greedy")):
        for place, name in ((0, "before"), (last, "after")):
            for number, run in enumerate(runs):
                if held := run.get(name + suffix):
                    reach = [[held["success"] - held["ci_low"]], [held["ci_high"] - held["success"]]]
                    style = {"fmt": "o", "color": "black", "markerfacecolor": face, "ms": 4.5, "lw": 0.8, "zorder": 3}
                    shift = last * 0.012 * (number - (len(runs) - 1) / 2)
                    first = number == 0 and name == "before"
                    axes.errorbar([place + shift], [held["success"]], reach, label=label if first else None, **style)
    for name, colour in (("expert", "#059669"), ("random", "#dc2626")):
        if name in runs[0]:
            mean = float(np.mean([run[name]["success"] for run in runs]))
            axes.axhline(mean, color=colour, lw=1, ls="--", label=f"{name}, test tasks")
    axes.set(xlabel="reinforcement-learning step", ylabel="success on held-out tasks", ylim=(-0.02, 1.04))
    axes.set_title(f"{runs[0]['env']}, seeds {seeds}, {runs[0]['device']}", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#9ca3af", alpha=0.3)
    figure.legend(frameon=False, fontsize=8.5, loc="outside lower center", ncols=2)  # beside the curves, on none
    figure.savefig(path, dpi=150, metadata={"Title": f"success on held-out tasks, seeds {seeds}"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="quickstart")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--folder", type=Path, help="where the runs lie; otherwise nowhere afterwards")
    chosen = parser.parse_args()
    out = RESULTS / f"{chosen.recipe}.json"
    about = origin(out, ("torch", "transformers", "gymnasium", "numpy"), run_folder=chosen.folder)
    with tempfile.TemporaryDirectory() as passing, ThreadPoolExecutor(chosen.jobs) as pool:
        outs = [(chosen.folder or Path(passing)) / f"seed-{seed}" for seed in range(chosen.seeds)]
        runs = list(pool.map(partial(finish_recipe, chosen.recipe), range(chosen.seeds), outs))
        rate = matrix_rate()
        runs = [
            run | {"cpu_minutes": cpu_minutes(run, folder), "speed": speed(folder, rate)}
            for run, folder in zip(runs, outs, strict=True)
        ]
        write(out, about, {"runs": runs})
        draw(runs, [held_out_curve(folder) for folder in outs], out.with_suffix(".png"))
    for summary in runs:
        names = [f"{name}{suffix}" for name in ("before", "after", "difference") for suffix in ("", "_greedy")]
        figures = "  ".join(f"{name} {summary[name]['success']:+.3f}" for name in names if name in summary)
        warmup, minutes = summary["warmup"], summary["cpu_minutes"]
        cost = (
            f"{warmup['demonstrations']:,} demonstrations, CPU minutes {minutes['warmup']:.1f} + {minutes['steps']:.1f}"
        )
        print(f"seed {summary['seed']}: {figures}  {cost}")


if __name__ == "__main__":
    main()
