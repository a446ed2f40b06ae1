"""Of which software tasks other inputs than their tests' own reach the fault: no memory of a visible test passes those.

    python -m benchmarks.runs.software.memorization --humanevalfix FILE --quixbugs FOLDER
    python -m benchmarks.runs.software.memorization --rows

Measures the tasks of all libraries, then the problems of HumanEvalFix and QuixBugs where they are given, then drills.
Each is written to ``--journal`` as soon as it is known, so the same command goes on where it was interrupted; another
commit needs another journal. ``--rows`` measures nothing: it writes what the result has into
``envs/software/tasks.jsonl``, from where training knows which tasks to leave out; tasks outside of a sample keep their
share. Needs a container engine, and sources of libraries: a split whose sources are missing is an error.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.kit.journal import Journal
from benchmarks.kit.provenance import RESULTS, ROOT, origin, write
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.software.mutation.candidates import SPLITS
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks import lock_file
from manyturn.envs.software.tasks.fault_reachability import measured
from manyturn.envs.software.tasks.task_card import recount
from manyturn.envs.software.tasks.task_sources import problems_of

OUT = RESULTS / "software_reach.json"
LOCK = ROOT / "envs" / "software" / "tasks.jsonl"


def chosen(splits: list[str], every: int, sources: list[str], drills: int) -> Iterator[tuple[str, list[Problem]]]:
    """Name of a row, and its problems."""
    problems = problems_of(None)
    if absent := [problems.absent[split] for split in splits if split in problems.absent]:
        raise SystemExit(absent[0])
    for split in splits:
        tasks = problems.tasks.get(split, ())[::every]
        yield split, [problems.problem(task) for task in tasks]
    for source in sources:
        problems = problems_of(source)
        tasks = [task for some in problems.tasks.values() for task in some]
        yield source.partition(":")[0], [problems.problem(task) for task in tasks]
    if drills:
        problems = problems_of("drills")
        tasks = [task for some in problems.tasks.values() for task in some]
        yield "drills", [problems.problem(task) for task in tasks[::drills]]


def summary(shares: dict[str, float], of: int) -> dict[str, Any]:
    """Numbers of tasks by their share, and the shares."""
    kinds = Counter("none" if not share else "all" if share == 1 else "some" for share in shares.values())
    counts = {f"{kind} of the tests": kinds[kind] for kind in ("all", "some", "none")}
    average = round(mean(shares.values()), 3) if shares else None
    return {"problems": of, "measured": len(shares), **counts, "mean": average, "shares": shares}


def rows(result: dict[str, Any]) -> None:
    """Write what was measured into the file of tasks."""
    shares = {name: share for row in SPLITS if row in result for name, share in result[row]["shares"].items()}
    entries = [entry._replace(reached=shares.get(entry.id, entry.reached)) for entry in lock_file.load(LOCK).entries]
    replace_text(LOCK, lock_file.save(entries))
    recount(LOCK, entries)
    print(f"{sum(entry.reached is not None for entry in entries)} of {len(entries)} tasks have their share")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--humanevalfix", type=Path, help="its Python set, a .jsonl")
    parser.add_argument("--quixbugs", type=Path, help="a checkout")
    parser.add_argument("--splits", default=",".join(("train", "smoke", "validation", "test", "test_functions")))
    parser.add_argument("--every", type=int, default=1, help="of so many tasks of a split one")
    parser.add_argument("--drills", type=int, default=9, help="of so many drills one; 0: none")
    parser.add_argument("--jobs", type=int, default=2, help="containers side by side")
    parser.add_argument("--journal", type=Path, default=Path("software_reach.journal"))
    parser.add_argument("--rows", action="store_true", help="only write the shares of the result into the tasks")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if args.rows:
        return rows(json.loads(args.out.read_text()))
    about = origin(args.out, ("docker",), humanevalfix=args.humanevalfix, quixbugs=args.quixbugs, journal=args.journal)
    journal = Journal[float](args.journal, about["commit"])
    places = {"humanevalfix": args.humanevalfix, "quixbugs": args.quixbugs}
    sources = [f"{name}:{place}" for name, place in places.items() if place is not None]
    result: dict[str, Any] = {}
    for row, problems in chosen(args.splits.split(","), args.every, sources, args.drills):
        done = journal.figures.setdefault(row, {})
        for problem, share in measured([each for each in problems if each.id not in done], args.jobs):
            if share is not None:
                journal.add(row, problem.id, round(share, 3))
        result[row] = summary({each.id: done[each.id] for each in problems if each.id in done}, len(problems))
        print(row, {key: value for key, value in result[row].items() if key != "shares"}, flush=True)
    write(args.out, about, result)


if __name__ == "__main__":
    main()
