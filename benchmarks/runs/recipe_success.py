"""Success of a ready-made run over seeds: the figures and pictures that README shows.

    python -m benchmarks.runs.recipe_success                  seeds 0, 1 and 2, about fifteen minutes
    python -m benchmarks.runs.recipe_success --recipe shop-tiny --jobs 2

Each seed is a run of its own in a fresh process, as a user starts it. Nothing is selected: all seeds are written.
"""

import argparse
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.kit.process import train_apart
from benchmarks.kit.provenance import RESULTS, origin, write


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
        shutil.copy(outs[0] / "curve.png", out.with_suffix(".png"))
    for summary in runs:
        figures = "  ".join(f"{name} {summary[name]['success']:+.3f}" for name in ("before", "after", "difference"))
        print(f"seed {summary['seed']}: {figures}  {summary['seconds']:.0f} s")


if __name__ == "__main__":
    main()
