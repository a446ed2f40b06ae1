"""Success after reinforcement by what the warm-up imitated: the expert, a noisy expert, or random play.

    python -m benchmarks.comparisons.warmup_start RUN-FOLDER --jobs 2     half an hour on two cores
    python -m benchmarks.comparisons.warmup_start --table                 the committed table, also in its .md

Each run is the recipe ``quickstart`` in a fresh process, as a user starts it; only options of its warm-up differ.
``warmup_start.toml`` has the starts, and what was expected of them before the runs. The same command continues.
"""

import argparse
import json
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparisons.expectation import mean_and_range, write_judged
from benchmarks.kit.process import finish_recipe
from benchmarks.kit.provenance import RESULTS, origin
from benchmarks.kit.table import table
from manyturn.trainers.record.run_folder import read_metrics

OUT = RESULTS / "warmup_start.json"
PLAN = tomllib.loads(Path(__file__).resolve().with_suffix(".toml").read_text(encoding="utf-8"))
FIGURES = {
    "sampled before": "before",
    "greedy before": "before_greedy",
    "sampled": "after",
    "greedy": "after_greedy",
}


def line_of(root: Path, start: str, seed: int) -> dict[str, Any]:
    """The figures of a run, which is made or continued unless it is finished."""
    changes, folder = PLAN["starts"][start], root / f"{start}-{seed}"
    words = [word for name, value in changes.items() for word in (f"--warmup.{name}", str(value))]
    summary = finish_recipe("quickstart", seed, folder, words, warmup=changes)
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    return {
        "start": start,
        "seed": seed,
        **{name: summary[key]["success"] for name, key in FIGURES.items()},
        "demonstrations": summary["warmup"]["demonstrations"],
        "entropy of the first step": round(steps[0]["entropy"], 4),
        "groups without signal": round(float(np.mean([line["groups_without_signal"] for line in steps])), 4),
        "training": [round(line["success"], 4) for line in steps],
        "weights": summary["weights"],
    }


def summary_table(lines: Sequence[Mapping[str, Any]]) -> str:
    """A row for each start: means over seeds, with the least and the greatest."""
    columns = (*FIGURES, "entropy of the first step", "groups without signal")
    rows = []
    for start in PLAN["starts"]:
        own = [line for line in lines if line["start"] == start]
        rows.append((start.replace("_", " "), *(mean_and_range(own, name) for name in columns)))
    return table(("imitated", *columns), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where the runs lie")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--table", action="store_true", help="only print the table of the result")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    if chosen.table:
        print(summary_table(json.loads(chosen.out.read_text(encoding="utf-8"))["runs"]))
        return
    if chosen.folder is None:
        parser.error("name a folder for the runs")
    about = origin(chosen.out, ("torch", "transformers", "gymnasium", "numpy"), run_folder=chosen.folder)
    seeds = range(PLAN["first_seed"], PLAN["first_seed"] + PLAN["seeds"])
    cells = [(start, seed) for seed in seeds for start in PLAN["starts"]]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        lines = list(pool.map(lambda cell: line_of(chosen.folder.resolve(), *cell), cells))
    write_judged(chosen.out, about, PLAN, lines, summary_table(lines), "start")


if __name__ == "__main__":
    main()
