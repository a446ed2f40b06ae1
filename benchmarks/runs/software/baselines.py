"""Success in software tasks of the expert, which has the known fixes, and of policies that fix nothing.

    python -m benchmarks.runs.software.baselines --tasks 6 --humanevalfix FILE --quixbugs FOLDER

Plays the first tasks of every library in every split, in containers, and all problems of HumanEvalFix and QuixBugs
where they are given. ``nothing`` hands in nothing, ``comment`` a comment at the end of the faulty file, and ``random``
takes twelve random actions before it hands in what has become of the files. Needs a container engine, and sources of
libraries (``manyturn data software``).

Each row is written to ``--journal`` as soon as it is known, so the same command goes on where it was interrupted;
another commit needs another journal.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.software.env import Software
from manyturn.envs.tools.calls import call_text

OUT = RESULTS / "software_floors.json"
RANDOM_TURNS = 12
SUBMIT = call_text("submit")


def comment(env: Software) -> str:
    """Adds a comment to a file that the known fix changes, and hands in."""
    path = min(env._problems.problem(env.task).fix)
    return call_text("bash", command=f"echo '# nothing is fixed' >> {path}") if env.turn == 0 else SUBMIT


def random(env: Software) -> str:
    """A random action of those that are listed, and hands in at last."""
    actions = [action for action in env.admissible() if action != SUBMIT]
    draw = generator("floors", env.task.id, env.turn)
    return actions[int(draw.integers(len(actions)))] if env.turn < RANDOM_TURNS else SUBMIT


POLICIES: dict[str, Callable[[Software], str]] = {
    "expert": Software.expert,
    "nothing": lambda env: SUBMIT,
    "comment": comment,
    "random": random,
}


def play(source: str | None, task: Task, policy: str) -> tuple[bool, str]:
    """Success of an episode, and the grade's cause if it was graded."""
    env = Software(split=task.split, source=source, unreached=True)
    try:
        env.reset(seed=0, options={"task": task})
        work = env._work
        while True:
            _, _, terminated, truncated, info = env.step(POLICIES[policy](env))
            if terminated or truncated:
                grade = work.grade if work is not None else None
                return info["success"], grade.cause if grade else "not graded"
    finally:
        env.close()


def chosen(sources: list[str], count: int) -> Iterator[tuple[str | None, dict[str, str], list[Task]]]:
    """Source, name of a row, and its tasks."""
    env = Software(unreached=True)
    for split in env.splits:
        by_library: dict[str, list[Task]] = defaultdict(list)
        for task in env.tasks(split):
            by_library[task.tags[0]].append(task)
        for library, tasks in by_library.items():
            yield None, {"split": split, "library": library}, tasks[:count]
    for source in sources:
        yield source, {"source": source.partition(":")[0]}, list(Software("test", source).tasks("test"))


def stored_rows(journal: Path, commit: str) -> list[dict[str, Any]]:
    """Rows that are there already. Raises SystemExit if they are of another commit."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    if lines and lines[0] != {"commit": commit}:
        raise SystemExit(f"{journal} is of another commit: give another --journal")
    if not lines:
        add(journal, {"commit": commit})
    return lines[1:]


def add(journal: Path, record: dict[str, Any]) -> None:
    with journal.open("a") as stream:
        stream.write(json.dumps(record) + "\n")


def row_of(pool: ThreadPoolExecutor, source: str | None, named: dict[str, str], tasks: list[Task]) -> dict[str, Any]:
    """Successes of each policy on some tasks, and which tasks the expert fails."""
    row: dict[str, Any] = {**named, "tasks": len(tasks)}
    for policy in POLICIES:
        ends = list(pool.map(lambda task, p=policy: play(source, task, p), tasks))
        row[policy] = sum(won for won, _ in ends)
        row.setdefault("tampered", 0)
        row["tampered"] += sum(cause == "tampered" for _, cause in ends)
        if policy == "expert" and row[policy] < len(tasks):
            row["expert fails"] = {task.id: cause for task, (won, cause) in zip(tasks, ends, strict=True) if not won}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=6, help="of each library in each split")
    parser.add_argument("--humanevalfix", type=Path, help="its Python set, a .jsonl")
    parser.add_argument("--quixbugs", type=Path, help="a checkout")
    parser.add_argument("--jobs", type=int, default=2, help="episodes side by side")
    parser.add_argument("--journal", type=Path, default=Path("software_floors.journal"))
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    about = origin(args.out, ("docker",), humanevalfix=args.humanevalfix, quixbugs=args.quixbugs, journal=args.journal)
    places = {"humanevalfix": args.humanevalfix, "quixbugs": args.quixbugs}
    sources = [f"{name}:{place}" for name, place in places.items() if place is not None]
    rows = stored_rows(args.journal, about["commit"])
    with ThreadPoolExecutor(args.jobs) as pool:
        for source, named, tasks in chosen(sources, args.tasks):
            if not any(named.items() <= row.items() for row in rows):
                rows.append(row_of(pool, source, named, tasks))
                add(args.journal, rows[-1])
                print(rows[-1], flush=True)
    ours = [row for row in rows if "library" in row]
    totals: dict[str, Any] = {"tasks": sum(row["tasks"] for row in ours)}
    totals |= {name: sum(row[name] for row in ours) for name in (*POLICIES, "tampered")}
    write(args.out, about, {**totals, "rows": rows})


if __name__ == "__main__":
    main()
