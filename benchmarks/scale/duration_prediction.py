"""Durations that ``manyturn plan`` predicts after a few steps of a run, next to what the run took.

    python -m benchmarks.scale.duration_prediction                              three recipes, about half an hour
    python -m benchmarks.scale.duration_prediction --recipes quickstart --first 3

Each recipe is one run in a fresh process, planned by its own first steps once it has ended. ``planned_minutes`` is
of the full run, and ``minutes`` is what it took by the clock. The machine should have nothing else to do.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.kit.process import train_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.trainers.run.setup.duration_forecast import measured, plan

OUT = RESULTS / "plan.json"
RECIPES = ("quickstart", "booking-tiny", "desk-tiny")


def row(recipe: str, first: list[int], steps: list[str], folder: Path) -> dict[str, Any]:
    """A run, and its plans by so many of its first steps."""
    run = folder / recipe
    summary = train_apart(["--recipe", recipe, *steps], run)
    plans = {}
    for count in first:
        taken = measured(run, count)
        minutes = plan(taken, taken.config.steps, taken.staleness, taken.places).minutes
        plans[str(count)] = {
            "planned_minutes": float(f"{minutes:.4g}"),
            "planned_over_taken": float(f"{minutes * 60 / summary['seconds']:.3g}"),
        }
    return {
        "recipe": recipe,
        "steps": summary["steps"],
        "minutes": float(f"{summary['seconds'] / 60:.4g}"),
        "peak_memory_mb": summary["peak_memory_mb"],
        "by_first_steps": plans,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="+", default=RECIPES)
    parser.add_argument("--first", nargs="+", type=int, default=[3, 10], help="plan by so many steps")
    parser.add_argument("--steps", type=int, help="of each run, fewer than its recipe has: to test the code")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.steps and options.out == OUT:
        parser.error("the file of results is of full runs: give --out")
    about = origin(options.out, ("torch", "transformers", "gymnasium", "numpy"))
    steps = ["--steps", str(options.steps)] if options.steps else []
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(recipe, options.first, steps, Path(folder)) for recipe in options.recipes]
    for each in rows:
        print(each)
    write(options.out, about, {"rows": rows})


if __name__ == "__main__":
    main()
