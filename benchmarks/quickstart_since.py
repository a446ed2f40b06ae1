"""The quickstart of an earlier commit and of this one, in turns on one machine: seconds and success of each.

    python benchmarks/quickstart_since.py                    seeds 0, 1 and 2, about a quarter of an hour
    python benchmarks/quickstart_since.py --seeds 1 --steps 1 --out toy.json

Both run the recipe as their own commit has it, with the packages that are installed now: what differs is our code and
our recipe, and both are told. The earlier commit comes from this checkout's history. ``quickstart_since.toml`` says
which it is, and what is expected.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from statistics import fmean, median
from typing import Any

from provenance import RESULTS, ROOT, origin, write

OUT = RESULTS / "quickstart_since.json"
PLAN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def run(tree: Path, seed: int, steps: int | None, folder: Path) -> dict[str, Any]:
    """A run of its own of the code in ``tree``: success on held-out tasks, seconds, and seconds of CPU time."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(tree)}
    asked = [sys.executable, "-c", "import manyturn; print(manyturn.__file__)"]
    found = subprocess.run(asked, check=True, cwd=tree, env=env, capture_output=True, text=True).stdout
    if not Path(found).is_relative_to(tree):
        raise SystemExit(f"Python finds manyturn at {found.strip()}, not in {tree}: install this checkout as editable")
    command = [sys.executable, "-m", "manyturn", "train", "--recipe", "quickstart", "--seed", str(seed)]
    earlier = cpu_seconds()
    command += ["--out", str(folder)] + (["--steps", str(steps)] if steps else [])
    subprocess.run(command, check=True, cwd=tree, env=env)
    summary = json.loads((folder / "summary.json").read_text())
    return {
        "seed": seed,
        "seconds": summary["seconds"],
        "cpu_seconds": round(cpu_seconds() - earlier, 1),
        "steps": summary["steps"],
        "before": summary["before"]["success"],
        "after": summary["after"]["success"],
    }


def cpu_seconds() -> float:
    """Of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def middle(runs: list[dict[str, Any]], name: str) -> float:
    return median(each[name] for each in runs)


def judged(plan: dict[str, Any], runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """What the runs of all seeds show: mean difference of success, share of CPU time, and whether that was expected."""
    rise = fmean(now["after"] - then["after"] for then, now in zip(runs["earlier"], runs["now"], strict=True))
    used = {which: sum(each["cpu_seconds"] for each in found) for which, found in runs.items()}
    share = used["now"] / used["earlier"]
    as_expected = rise >= -plan["margin"] and share <= plan["share"]
    return {"difference": round(rise, 4), "share": round(share, 3), "as_expected": as_expected}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=PLAN["seeds"])
    parser.add_argument("--steps", type=int, help="of each run; default: the recipe's own")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    if chosen.seeds < 1:
        parser.error("nothing to compare: --seeds is at least 1")
    about = origin(chosen.out, ("torch", "transformers", "gymnasium", "numpy"))
    runs: dict[str, list[dict[str, Any]]] = {"earlier": [], "now": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = folder / "earlier"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, PLAN["before"]], cwd=ROOT, check=True)
        try:
            for seed in range(chosen.seeds):
                for which, code in (("earlier", tree), ("now", ROOT)):
                    runs[which].append(run(code, seed, chosen.steps, folder / f"{which}-{seed}"))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    rows = {
        which: {name: middle(found, name) for name in ("seconds", "cpu_seconds", "after")}
        for which, found in runs.items()
    }
    for which, row in rows.items():
        print(f"{which:8} {row['seconds']:.0f} s  CPU {row['cpu_seconds']:.0f} s  success {row['after']:.3f}")
    result = judged(PLAN, runs)
    print(result)
    write(chosen.out, about, {"plan": PLAN, "medians": rows, "result": result, "runs": runs})


if __name__ == "__main__":
    main()
