"""Success and seconds of a recipe with each way of packing samples.

    python -m benchmarks.runs.packing        the quickstart, 3 seeds, about twenty minutes on a quiet machine
    python -m benchmarks.runs.packing --seeds 1 --steps 2 --out toy.json
    python -m benchmarks.runs.packing --recipe maze-smollm2 --model DIR --packings padding trie --seeds 1 --jobs 2

Runs of one seed differ in ``learner.packing`` alone, and take turns or run side by side. Gradients are the same up to
rounding, so that weights part in time, and with them the texts that are played: what is compared is what a user gets,
not a pass.
"""

import argparse
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, get_args

from benchmarks.kit.process import train_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.trainers.learn.passes.trie.packing import Packing
from manyturn.trainers.record.run_folder import read_metrics


def run(words: list[str], folder: Path, each: tuple[int, str]) -> dict[str, Any]:
    """A run of its own, as a user starts it: success on held-out tasks, and seconds."""
    seed, packing = each
    out = folder / f"{packing}-{seed}"
    options = ["--learner.packing", packing, "--seed", str(seed)]
    summary, lines = train_apart([*words, *options], out), read_metrics(out)
    learnt = [line for line in lines if line["phase"] == "train"]
    figures = {"packing": packing, "seed": seed, "steps": summary["steps"], "seconds": summary["seconds"]}
    for name in ("learn_cpu_seconds", "rollout_cpu_seconds"):
        figures[name] = round(sum(line[name] for line in learnt), 2)
    return figures | {name: summary[name]["success"] for name in ("before", "after")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="quickstart")
    parser.add_argument("--model", type=Path, help="folder of the recipe's model, where it needs one")
    parser.add_argument("--packings", nargs="+", choices=get_args(Packing), default=get_args(Packing))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="of each run; default: the recipe's own")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side; compare their CPU seconds")
    parser.add_argument("--out", type=Path, help="default: packing-RECIPE.json, among the results")
    chosen = parser.parse_args()
    if min(chosen.seeds, chosen.jobs, 1 if chosen.steps is None else chosen.steps) < 1:
        parser.error("nothing to compare: --seeds, --steps and --jobs are at least 1")
    out = chosen.out or RESULTS / f"packing-{chosen.recipe}.json"
    about = origin(out, ("torch", "transformers", "gymnasium", "numpy"), model=chosen.model)
    words = ["--recipe", chosen.recipe]
    words += ["--model.path", str(chosen.model)] if chosen.model else []
    words += ["--steps", str(chosen.steps)] if chosen.steps else []
    planned = [(seed, packing) for seed in range(chosen.seeds) for packing in chosen.packings]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        runs = list(pool.map(partial(run, words, Path(folder)), planned))
    rows = []
    for packing in chosen.packings:
        some = [each for each in runs if each["packing"] == packing]
        names = [name for name in some[0] if name not in ("packing", "seed", "steps")]
        rows.append({"packing": packing, "median": {name: median(each[name] for each in some) for name in names}})
        print(f"{packing:10}" + "  ".join(f"{name} {value:.4g}" for name, value in rows[-1]["median"].items()))
    write(out, about, {"rows": rows, "runs": runs})


if __name__ == "__main__":
    main()
