"""What the ways of packing samples are worth to a whole run: success and seconds of the quickstart with each.

    python benchmarks/packing.py                     3 seeds, about twenty minutes on a quiet machine
    python benchmarks/packing.py --seeds 1 --steps 2 --out toy.json

Runs of one seed differ in ``learner.packing`` alone, and take turns. Gradients are the same up to rounding, so that
weights part in time, and with them the texts that are played: what is compared is what a user gets, not a pass.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, get_args

from provenance import RESULTS, origin, write

from manyturn.trainers.learn.trie.packing import Packing
from manyturn.trainers.record.run_folder import read_metrics

OUT = RESULTS / "packing.json"


def run(packing: str, seed: int, steps: int, folder: Path) -> dict[str, Any]:
    """A run of its own, as a user starts it: success on held-out tasks, and seconds."""
    out = folder / f"{packing}-{seed}"
    options = ["--learner.packing", packing, "--seed", str(seed), "--steps", str(steps), "--out", str(out)]
    command = [sys.executable, "-m", "manyturn", "train", "--recipe", "quickstart", *options]
    subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    summary, lines = json.loads((out / "summary.json").read_text()), read_metrics(out)
    learnt = [line for line in lines if line["phase"] == "train"]
    return {
        "packing": packing,
        "seed": seed,
        "seconds": summary["seconds"],
        "learn_cpu_seconds": round(sum(line["learn_cpu_seconds"] for line in learnt), 2),
        "before": summary["before"]["success"],
        "after": summary["after"]["success"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="of each run")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    if min(chosen.seeds, chosen.steps) < 1:
        parser.error("nothing to compare: --seeds and --steps are at least 1")
    about = origin(chosen.out, ("torch", "transformers", "gymnasium", "numpy"))
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            run(packing, seed, chosen.steps, Path(folder))
            for seed in range(chosen.seeds)
            for packing in get_args(Packing)
        ]
    rows = []
    for packing in get_args(Packing):
        found = [each for each in runs if each["packing"] == packing]
        names = ("seconds", "learn_cpu_seconds", "before", "after")
        rows.append({"packing": packing, "median": {name: median(each[name] for each in found) for name in names}})
        print(f"{packing:10}" + "  ".join(f"{name} {value:.4g}" for name, value in rows[-1]["median"].items()))
    write(chosen.out, about, {"steps": chosen.steps, "rows": rows, "runs": runs})


if __name__ == "__main__":
    main()
