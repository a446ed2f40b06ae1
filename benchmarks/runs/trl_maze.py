"""Gain of TRL's trainer in our maze with our credit: ``examples/trainers/trl_maze.py``, seed after seed.

.venv-hosts/trl/bin/python -m benchmarks.runs.trl_maze      where TRL is installed; a minute and a half for each seed
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.kit.provenance import RESULTS, ROOT, origin, write

OUT = RESULTS / "trl_maze.json"
EXAMPLE = ROOT / "examples" / "trainers" / "trl_maze.py"


def learnt(seed: int) -> dict[str, Any]:
    """Success before and after a seed's run, on the same 200 held-out mazes, and their difference, paired by maze."""
    quiet = {**os.environ, "TRL_EXPERIMENTAL_SILENCE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        words = [sys.executable, str(EXAMPLE), "--seed", str(seed), "--out", folder]
        ended = subprocess.run(words, cwd=folder, env=quiet, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"seed {seed}: {ended.stderr[-4000:]}")
        return json.loads(ended.stdout.splitlines()[-1]) | {"seconds": round(time.perf_counter() - began)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    about = origin(options.out, ("trl", "torch", "transformers", "accelerate", "numpy"))
    seeds = []
    for seed in range(options.seeds):
        seeds.append(learnt(seed))
        print(seeds[-1], flush=True)
    write(options.out, about, {"seeds": seeds})


if __name__ == "__main__":
    main()
