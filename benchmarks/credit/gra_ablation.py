"""Effect of G-RA's gate on rewards of turns: a recipe as it is, and without its reward stages.

    python -m benchmarks.credit.gra_ablation RUN-FOLDER --recipe software-tiny --seeds 2 --jobs 2

Each run is a process of its own, as a user starts it. Both variants of a seed begin with the same warmed-up weights,
for a warm-up depends on the seed and not on credit. The same command continues where it was. Nothing is selected: all
seeds are written, to results/RECIPE.json, and drawn, to results/RECIPE.png.

Of ``gated minus ungated`` there are three: ``by_seed`` compares two runs, paired by task; ``other_tasks`` pairs by
task over all seeds, with an interval for other tasks and these seeds; ``other_seeds`` pairs by seed, with an interval
for other seeds on these tasks.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.kit.process import finish_recipe
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.evaluation.paired_comparison import Evaluated, compare, read_evaluation, same_tasks, values_over
from manyturn.agents.evaluation.statistics import Interval, Values, paired_difference
from manyturn.recipes import load_recipe
from manyturn.trainers.record.run_folder import read_metrics

CHANGES: Mapping[str, list[str]] = {"ungated": ["--credit.rewards", "[]"], "gated": []}
COLOURS = {"ungated": "#d97706", "gated": "#2563eb"}
SMOOTHED = 5  # steps that a point of a curve is the mean of
Run = dict[str, Any]


def run(recipe: str, variant: str, seed: int, out: Path) -> Run:
    """The summary and the training curve of a run, which is made or continued unless it is finished."""
    ungated = {"credit": {"rewards": []}} if CHANGES[variant] else {}
    summary = finish_recipe(recipe, seed, out, CHANGES[variant], **ungated)
    training = [line["success"] for line in read_metrics(out) if line["phase"] == "train"]
    return {"variant": variant, "training": training, **summary}


def check_start(runs: Sequence[Run]) -> None:
    """Raise SystemExit unless both variants of each seed began with the same policy."""
    for seed in {record["seed"] for record in runs}:
        # Time says nothing about weights.
        ungated, gated = (
            ({**record["warmup"], "cpu_seconds": 0.0}, record["before"]) for record in runs if record["seed"] == seed
        )
        if ungated != gated:
            raise SystemExit(
                f"seed {seed}: gated and ungated were warmed up differently: remove both and run them again"
            )


def differences(folders: Mapping[int, Mapping[str, Path]]) -> dict[str, Any]:
    """Held-out success gated minus ungated, from seed -> variant -> folder of the run."""
    read = {seed: {name: read_evaluation(out) for name, out in pair.items()} for seed, pair in folders.items()}
    by_seed = [
        {"seed": seed, **compare([pair["ungated"], pair["gated"]])["comparisons"][0]["success"]}
        for seed, pair in read.items()
    ]
    tasks = same_tasks([evaluated for pair in read.values() for evaluated in pair.values()])
    scores = {name: [_success(pair[name], tasks) for pair in read.values()] for name in CHANGES}
    shared = [task for task in tasks.values() if all(task in record for each in scores.values() for record in each)]
    tasks_of = {
        name: {task: [value for record in each for value in record[task]] for task in shared}
        for name, each in scores.items()
    }
    seeds_of = {
        name: {str(seed): [value for task in shared for value in record[task]] for seed, record in enumerate(each)}
        for name, each in scores.items()
    }
    return {
        "by_seed": by_seed,
        "other_tasks": rounded(paired_difference(tasks_of["gated"], tasks_of["ungated"], proportion=True)),
        "other_seeds": rounded(paired_difference(seeds_of["gated"], seeds_of["ungated"], proportion=True)),
    }


def _success(evaluated: Evaluated, tasks: Mapping[str, str]) -> Values:
    return values_over(evaluated.rows, "success", tasks)


def rounded(interval: Interval) -> dict[str, float | None]:
    ends = {"difference": interval.mean, "ci_low": interval.low, "ci_high": interval.high}
    return {name: None if math.isnan(value) else value for name, value in ends.items()}


def draw(runs: Sequence[Run], recipe: str, path: Path) -> None:
    """Draw success in training, all seeds, and held-out success before and after it with 95 % intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (curves, held) = pyplot.subplots(
        1, 2, figsize=(9.6, 4), layout="constrained", sharey=True, width_ratios=(1.6, 1)
    )
    for record in runs:
        success = _smooth([value for value in record["training"] if value is not None])
        curves.plot(range(1, len(success) + 1), success, color=COLOURS[record["variant"]], lw=1.8, alpha=0.8)
    ticks: dict[str, int] = {}
    for place, (seed, pair) in enumerate(groupby(runs, lambda record: record["seed"])):
        both = {record["variant"]: record for record in pair}
        bars = [("before", both["gated"]["before"], "black"), *((n, both[n]["after"], c) for n, c in COLOURS.items())]
        for aside, (name, figures, colour) in enumerate(bars):
            low, high = (abs(figures[end] - figures["success"]) for end in ("ci_low", "ci_high"))
            label = None if place else ("before" if name == "before" else f"after, {name}")
            at = 4 * place + aside
            held.errorbar(at, figures["success"], [[low], [high]], fmt="o", color=colour, capsize=4, label=label)
        ticks[f"seed {seed}"] = 4 * place + 1
    for name, style in (("expert", "--"), ("random", ":")):
        if name in runs[0]:
            held.axhline(runs[0][name]["success"], color="grey", lw=1, ls=style, label=name, zorder=0)
    curves.set(xlabel=f"step (mean of {SMOOTHED})", ylabel="success", ylim=(-0.02, 1.04), title=f"{recipe}: training")
    held.set(title="held-out tasks, 95 % intervals")
    held.set_xticks(list(ticks.values()), list(ticks))
    for axes in (curves, held):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _smooth(values: Sequence[float]) -> list[float]:
    windows = [values[max(0, end - SMOOTHED) : end] for end in range(1, len(values) + 1)]
    return [sum(window) / len(window) for window in windows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs lie")
    parser.add_argument("--recipe", required=True, help="one with reward stages, such as software-tiny")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    chosen = parser.parse_args()
    if not load_recipe(chosen.recipe).get("credit", {}).get("rewards"):
        raise SystemExit(f"{chosen.recipe} has no reward stage to leave out: name a recipe with [[credit.rewards]]")
    name = Path(chosen.recipe).stem
    out = RESULTS / f"{name}.json"
    about = origin(out, ("torch", "transformers", "gymnasium", "numpy"), run_folder=chosen.folder)
    folders = {s: {name: chosen.folder / f"{name}-{s}" for name in CHANGES} for s in range(chosen.seeds)}
    cells = [(variant, seed, out) for seed, pair in folders.items() for variant, out in pair.items()]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        runs = list(pool.map(lambda cell: run(chosen.recipe, *cell), cells))
    check_start(runs)
    write(out, about, {"gated_minus_ungated": differences(folders), "runs": runs})
    draw(runs, name, out.with_suffix(".png"))
    for record in runs:
        figures = "  ".join(
            f"{name} {rate} {value:.3f}"
            for name in ("before", "after")
            for rate, value in {"success": record[name]["success"], **record[name].get("measures", {})}.items()
        )
        print(f"seed {record['seed']} {record['variant']:8} {figures}  {record['seconds']:.0f} s")


if __name__ == "__main__":
    main()
