"""Success of a ready-made run over seeds: the figures and pictures that README shows.

    python -m benchmarks.runs.recipe_success                  seeds 0, 1 and 2, about fifteen minutes
    python -m benchmarks.runs.recipe_success --recipe shop-tiny --jobs 2

Each seed is a run of its own in a fresh process, as a user starts it. Nothing is selected: all seeds are written.
"""

import argparse
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.kit.process import train_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.trainers.record.run_folder import read_metrics

Curve = tuple[list[int], list[float]]


def held_out_curve(folder: Path) -> Curve:
    """Steps and success on validation tasks after each of them; empty where the recipe measures none."""
    lines = [line for line in read_metrics(folder) if line["phase"] == "validation"]
    return [line["step"] for line in lines], [line["success"] for line in lines]


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
    axes.legend(frameon=False, fontsize=8.5, loc="lower right", bbox_to_anchor=(1, 0.18))
    figure.savefig(path, dpi=150, metadata={"Title": f"success on held-out tasks, seeds {seeds}"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="quickstart")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    chosen = parser.parse_args()
    out = RESULTS / f"{chosen.recipe}.json"
    about = origin(out, ("torch", "transformers", "gymnasium", "numpy"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        outs = [Path(folder) / f"seed-{seed}" for seed in range(chosen.seeds)]
        words = [["--recipe", chosen.recipe, "--seed", str(seed)] for seed in range(chosen.seeds)]
        runs = list(pool.map(train_apart, words, outs))
        write(out, about, {"runs": runs})
        draw(runs, [held_out_curve(folder) for folder in outs], out.with_suffix(".png"))
    for summary in runs:
        names = [name for name in ("before", "before_greedy", "after", "after_greedy", "difference") if name in summary]
        figures = "  ".join(f"{name} {summary[name]['success']:+.3f}" for name in names)
        print(f"seed {summary['seed']}: {figures}  {summary['seconds']:.0f} s")


if __name__ == "__main__":
    main()
