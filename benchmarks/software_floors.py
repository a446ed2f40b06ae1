"""Whether software tasks can be won by their known mends, and only by work: the expert, and one who hands in nothing.

    python benchmarks/software_floors.py --tasks 6

Plays the first tasks of every library in every split, in containers, by both. Needs a container engine, and the
libraries' sources (``manyturn data software``).
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from provenance import RESULTS, origin, write

from manyturn.envs.contract.task import Task
from manyturn.envs.software.env import Software

OUT = RESULTS / "software_floors.json"
POLICIES: dict[str, Callable[[Software], str]] = {"expert": Software.expert, "nothing": lambda env: "submit"}


def play(task: Task, policy: str) -> bool:
    """Whether an episode ends with the fault mended."""
    env = Software(split=task.split)
    try:
        env.reset(seed=0, options={"task": task})
        while True:
            _, _, terminated, truncated, info = env.step(POLICIES[policy](env))
            if terminated or truncated:
                return info["success"]
    finally:
        env.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=6, help="of each library in each split")
    parser.add_argument("--jobs", type=int, default=2, help="episodes side by side")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    about = origin(args.out, ("docker",))
    env, began = Software(), time.monotonic()
    chosen: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for split in env.splits:
        for task in env.tasks(split):
            if len(some := chosen[split, task.tags[0]]) < args.tasks:
                some.append(task)
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for (split, library), tasks in chosen.items():
            won = {name: sum(pool.map(play, tasks, [name] * len(tasks))) for name in POLICIES}
            rows.append({"split": split, "library": library, "tasks": len(tasks), **won})
            print(
                f"{split:16}{library:14}{len(tasks):4} tasks, expert {won['expert']}, nothing {won['nothing']}",
                flush=True,
            )
    found: dict[str, Any] = {"seconds": round(time.monotonic() - began), "tasks": sum(row["tasks"] for row in rows)}
    found |= {name: sum(row[name] for row in rows) for name in POLICIES}
    write(args.out, about, {**found, "rows": rows})


if __name__ == "__main__":
    main()
