"""What ``make quickstart`` or another recipe reaches, over seeds: the figures and the pictures that README shows.

    python benchmarks/quickstart.py                  seeds 0, 1 and 2, about fifteen minutes
    python benchmarks/quickstart.py --recipe shop-tiny --jobs 2

Each seed is a run of its own in a fresh process, as a user starts it. Nothing is selected: all seeds are written.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from provenance import RESULTS, origin, write


def run(recipe: str, seed: int, out: Path) -> dict[str, Any]:
    """The summary of a run."""
    command = [sys.executable, "-m", "manyturn", "train", "--recipe", recipe, "--seed", str(seed), "--out", str(out)]
    subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    return json.loads((out / "summary.json").read_text())


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
        runs = list(pool.map(run, [chosen.recipe] * chosen.seeds, range(chosen.seeds), outs))
        write(out, about, {"runs": runs})
        shutil.copy(outs[0] / "curve.png", out.with_suffix(".png"))
    for found in runs:
        told = "  ".join(f"{name} {found[name]['success']:+.3f}" for name in ("before", "after", "difference"))
        print(f"seed {found['seed']}: {told}  {found['seconds']:.0f} s")


if __name__ == "__main__":
    main()
