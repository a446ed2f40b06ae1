"""Seconds of ``manyturn quickstart`` at two commits, by turns on one machine.

    python -m benchmarks.speed.first_run COMMIT               two runs of each, about five minutes

Both commits run as a user starts them, each from its own tree in a fresh process, one after the other; whatever else
the machine does meanwhile stretches the seconds of both. The processor's seconds tell how much that was.
"""

import argparse
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kit.provenance import RESULTS, ROOT, origin, write

_PHASES = re.compile(r"^\d+ s: (.*?); ", re.MULTILINE)  # the last line of a run: "66 s: loading 1, playing 23, ..."


def tree_of(commit: str, folder: Path) -> Path:
    """The files of a commit, unpacked into a folder."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def phases_of(output: str) -> dict[str, float]:
    """The seconds of each part, as a run prints them.

    >>> phases_of("66 s: loading 1, evaluating and saving 9; runs/a/summary.json")
    {'loading': 1.0, 'evaluating and saving': 9.0}
    """
    last = _PHASES.findall(output)
    parts = last[-1].split(", ") if last else []
    return {name: float(seconds) for name, seconds in (part.rsplit(" ", 1) for part in parts)}


def timed(tree: Path, out: Path, words: Sequence[str]) -> dict[str, Any]:
    """A run of the quickstart: seconds, seconds of the processor, its parts, and success on held-out tasks."""
    command = [sys.executable, "-m", "manyturn", "quickstart", "--out", str(out), *words]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
    ended = subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} failed in {tree}:\n{ended.stderr}")
    summary = json.loads((out / "summary.json").read_text())
    names = ("before", "before_greedy", "after", "after_greedy")
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "parts": phases_of(ended.stdout + ended.stderr),
        "success": {name: summary[name]["success"] for name in names if name in summary},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="compared with this checkout's")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--words", default="", help="options of both runs, such as --words='--seed 1'")
    parser.add_argument("--out", type=Path, default=RESULTS / "first_run.json")
    chosen = parser.parse_args()
    about = origin(chosen.out, ("torch", "transformers", "numpy"))
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as passing:
        commits = {"before": chosen.commit, "after": "HEAD"}
        trees = {name: tree_of(commit, Path(passing) / name) for name, commit in commits.items()}
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
        for repeat in range(chosen.repeats):
            for name, tree in trees.items():
                runs[name].append(timed(tree, Path(passing) / f"{name}-{repeat}", shlex.split(chosen.words)))
    medians = {name: median(run["seconds"] for run in made) for name, made in runs.items()}
    write(chosen.out, about, {"before_commit": chosen.commit, "load": round(load, 1), "seconds": medians, "runs": runs})
    print(f"before {medians['before']:.0f} s, after {medians['after']:.0f} s; load at the beginning {load:.1f}")


if __name__ == "__main__":
    main()
