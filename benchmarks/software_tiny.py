"""What a tiny decoder learns of mending faults in containers, with G-RA's gate before the rewards of turns and without.

    python benchmarks/software_tiny.py RUN-FOLDER --seeds 1

Both train by the recipe ``software-tiny`` from the same warmed-up weights; one of them without its reward stage. Needs
a container engine. Resolved, completed (something was handed in) and modified (with a change that is graded) are shares
of the held-out episodes.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from quickstart import RESULTS, commit

VARIANTS = {"gated": [], "ungated": ["--credit.rewards", "[]"]}


def run(variant: str, seed: int, out: Path) -> dict[str, Any]:
    """The summary of a run, which is made unless it is there."""
    if not (out / "summary.json").is_file():
        command = [sys.executable, "-m", "manyturn", "train", "--recipe", "software-tiny", *VARIANTS[variant]]
        subprocess.run([*command, "--seed", str(seed), "--out", str(out)], check=True)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    training = [round(line["success"], 4) for line in lines if line["phase"] == "train"]
    return {"variant": variant, "training": training, **json.loads((out / "summary.json").read_text())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs lie")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")
    chosen = parser.parse_args()
    made_from = commit()
    cells = [(variant, seed) for seed in range(chosen.seeds) for variant in VARIANTS]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        runs = list(pool.map(lambda cell: run(*cell, chosen.folder / f"{cell[0]}-{cell[1]}"), cells))
    result = {
        "command": f"python benchmarks/software_tiny.py RUN-FOLDER --seeds {chosen.seeds} --jobs {chosen.jobs}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": made_from,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {name: version(name) for name in ("torch", "transformers", "gymnasium", "docker")},
        "runs": runs,
    }
    (RESULTS / "software_tiny.json").write_text(json.dumps(result, indent=1) + "\n")
    for found in runs:
        for name in ("before", "after"):
            rates = {"resolved": found[name]["success"], **found[name]["measures"]}
            told = "  ".join(f"{rate} {value:.3f}" for rate, value in rates.items())
            print(f"seed {found['seed']} {found['variant']:8} {name:6}  {told}")


if __name__ == "__main__":
    main()
