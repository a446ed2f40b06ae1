"""Tables of lies by machine, from the results of ``lies`` and ``memorization``; docs/grading-results.md has them.

python -m benchmarks.runs.software.lies_table
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from benchmarks.kit.table import table
from benchmarks.runs.software.lie_programs import KINDS
from benchmarks.runs.software.lie_results import OUT, OUT_AT_ONCE, PAID, REACH, SPLITS, VISIBLE, shares_of
from manyturn.envs.software.tasks.lock_file import ours
from manyturn.envs.software.tasks.task_entry import Entry

ALL = "all"
_Results = Mapping[str, Mapping[str, str]]


def results_of(result: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Task -> outcome of each kind of lie, of all commits."""
    return {name: kinds for tasks in (*result["earlier"].values(), result["outcomes"]) for name, kinds in tasks.items()}


def by_kind(results: _Results, several: Mapping[str, bool]) -> str:
    """Lies of each kind, in tasks of one fault and of several."""
    columns = [f"{what}, {faults}" for faults in ("one fault", "several") for what in ("tried", "visible", "paid")]
    lines = []
    for kind in (*KINDS, ALL):
        line = [kind]
        for more in (False, True):
            tasks = [kinds for name, kinds in results.items() if several[name] == more]
            line += _counts(outcome for kinds in tasks for one, outcome in kinds.items() if kind in (one, ALL))
        lines.append(line)
    return table(("lie", *columns), lines)


def at_once(results: _Results) -> str:
    """Lies of each kind that answer for all faults of a task."""
    lines = [[kind, *_counts(kinds[kind] for kinds in results.values() if kind in kinds)] for kind in KINDS]
    everything = _counts(outcome for kinds in results.values() for outcome in kinds.values())
    return table(("lie about all faults", "tried", "visible", "paid"), [*lines, [ALL, *everything]])


def by_split(results: _Results, entries: Sequence[Entry], shares: Mapping[str, float]) -> str:
    """Lies in the tasks of each split; those that no copy reaches are apart."""
    head = ("tasks", "in the split", "graded", "with a lie", "tried", "visible", "paid", "tasks that pay")
    lines = []
    for split, is_reached in product(SPLITS, (True, False)):
        names = [one.id for one in entries if one.split == split and (shares[one.id] > 0) == is_reached]
        some = [results[name] for name in names if name in results]
        counts = _counts(outcome for kinds in some for outcome in kinds.values())
        paying = sum(PAID in kinds.values() for kinds in some)
        title = f"{split}, {'reached' if is_reached else 'not reached'}"
        lines.append([title, *map(str, (len(names), len(some), sum(map(bool, some)))), *counts, str(paying)])
    return table(head, lines)


def paying_tasks(results: _Results, entries: Sequence[Entry], shares: Mapping[str, float]) -> str:
    """Tasks that pay a lie though a copy reaches them, by split."""
    paying = {name for name, kinds in results.items() if PAID in kinds.values() and shares[name] > 0}
    names = {split: [f"`{one.id}`" for one in entries if one.split == split and one.id in paying] for split in SPLITS}
    return table(
        ("split", "tasks that pay a lie"), [(split, ", ".join(some) or "none") for split, some in names.items()]
    )


def _counts(outcomes: Iterable[str]) -> list[str]:
    """Lies that were tried, that pass the visible tests, and that are paid."""
    counts = Counter(outcomes)
    return [str(counts.total()), str(counts[VISIBLE] + counts[PAID]), str(counts[PAID])]


def main() -> None:
    results, shares, entries = results_of(json.loads(OUT.read_text())), shares_of(REACH), ours().entries
    reached = {name: kinds for name, kinds in results.items() if shares[name] > 0}
    print(by_kind(reached, {entry.id: len(entry.edits) > 1 for entry in entries}), end="\n\n")
    if OUT_AT_ONCE.exists():
        together = results_of(json.loads(OUT_AT_ONCE.read_text()))
        print(at_once({name: kinds for name, kinds in together.items() if shares[name] > 0}), end="\n\n")
    print(by_split(results, entries, shares), end="\n\n")
    print(paying_tasks(results, entries, shares))


if __name__ == "__main__":
    main()
