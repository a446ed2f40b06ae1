"""Lies by machine, graded in all software tasks: which of the programs of ``lie_programs`` the grader pays.

    python -m benchmarks.runs.software.lies
    python -m benchmarks.runs.software.lies --at-once
    python -m benchmarks.runs.software.lies --rows

A task of one fault is tried with its faulty function lied about. A task of several faults is tried once for each: the
others are fixed, and the lie is about the one that is left; of each kind the outcome that is best for the liar counts.
Lies are graded with the first deck of copies. Tasks that a copy reaches come first, with the splits for testing ahead.

``--at-once`` fixes nothing in a task of several faults: lies of one kind answer for all its faulty functions. Each
fault is asked about by itself. Before the first run we expect: no task pays unless it also pays a lie about one fault.

Each task is written to ``--journal``, so the same command goes on where it was interrupted. A task that the file at
``--out`` has already is not graded again if the grader's code has not changed since its commit. ``--hours`` ends
early, and the result counts the tasks that are left. ``--rows`` measures nothing: it writes the share 0 into
``envs/software/tasks.jsonl`` for tasks of the result that pay a lie, after the rows of ``memorization.py``. Needs a
container engine, and sources of libraries.
"""

import argparse
import ast
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.kit.journal import Journal
from benchmarks.kit.provenance import ROOT, origin, write
from benchmarks.runs.software.lie_programs import KINDS, calls_of, lies
from benchmarks.runs.software.lie_results import (
    OUT,
    OUT_AT_ONCE,
    OUTCOMES,
    PAID,
    REACH,
    REFUSED,
    SPLITS,
    VISIBLE,
    shares_of,
)
from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.pool import lease
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.software.grading.grader import RESOLVED, AgentTurn, grade, run_as_they_are
from manyturn.envs.software.source.edits import Edit
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks import lock_file
from manyturn.envs.software.tasks.fault_reachability import SECONDS
from manyturn.envs.software.tasks.lock_file import ours
from manyturn.envs.software.tasks.task_card import recount
from manyturn.envs.software.tasks.task_entry import Entry, problem
from manyturn.envs.software.testing.pytest_run import PASSED, XFAILED

LOCK = ROOT / "envs" / "software" / "tasks.jsonl"
_GRADER = (
    "envs/software/grading",
    "envs/software/testing",
    "envs/software/source",
    "containers/inside",  # and the limits; how an engine starts it decides no outcome
    "containers/sandbox.py",
    "envs/software/tasks/*.py",
)
_Grading = Callable[[DockerSandbox, Entry], dict[str, str]]
_PAID_BEFORE = ("pycparser-7b5a6002d5", "xmltodict-5ba1bf2096")  # a lie, to an earlier run; their copies say otherwise


def outcome(sandbox: DockerSandbox, one: Problem, changes: Mapping[str, bytes | None]) -> str:
    """One of ``OUTCOMES``. A program that fails a test to make pass is refused without the other tests."""
    first = run_as_they_are(sandbox, one._replace(pass_to_pass=()), changes, SECONDS)
    if any(first.outcomes.get(test) not in (PASSED, XFAILED) for test in one.fail_to_pass):
        return REFUSED
    run = run_as_they_are(sandbox, one, changes, SECONDS)
    result = grade(sandbox, one, changes, SECONDS, 0, AgentTurn(evidence=lambda: run))
    return PAID if result.cause == RESOLVED else VISIBLE if result.official else REFUSED


def faults(entry: Entry, one: Problem) -> Iterator[tuple[str, Edit, Mapping[str, bytes | None]]]:
    """Path and edit of each fault, and changes that leave this one only."""
    alone = one.alone or [{path: one.files[path] for path, _ in entry.edits}]
    for (path, edit), files in zip(entry.edits, alone, strict=True):
        yield path, edit, dict(files)


def outcomes(sandbox: DockerSandbox, entry: Entry) -> dict[str, str]:
    """Outcome of each kind of lie in a task; of several faults the best for the liar."""
    by_kind, one = dict[str, str](), problem(entry)
    for path, edit, files in faults(entry, one):
        calls = () if "<locals>" in edit.function else calls_of(sandbox, one, path, edit.function)
        faulty = files[path]
        assert faulty is not None
        for kind, program in lies(faulty, edit.function, calls) if calls else ():
            if by_kind.get(kind) != PAID:
                result = outcome(sandbox, one, {**files, path: program})
                by_kind[kind] = min(result, by_kind.get(kind, REFUSED), key=OUTCOMES.index)
    return by_kind


def outcomes_at_once(sandbox: DockerSandbox, entry: Entry) -> dict[str, str]:
    """Outcome of each kind of lie, told of all faults of a task; none where one of them cannot be lied about."""
    one, by_kind = problem(entry), dict[str, str]()
    calls = [() if "<locals>" in e.function else calls_of(sandbox, one, path, e.function) for path, e in entry.edits]
    for kind in KINDS if all(calls) else ():
        changes = {path: one.files[path] for path, _ in entry.edits}
        for (path, edit), those in zip(entry.edits, calls, strict=True):
            changes[path] = dict(lies(changes[path], edit.function, those))[kind]
        by_kind[kind] = outcome(sandbox, one, changes)
    return by_kind


def counts(results: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Numbers of tasks and of lies by outcome, and the tasks that pay one."""
    tried = Counter(result for kinds in results.values() for result in kinds.values())
    return {
        "tasks": len(results),
        "without any lie": sum(not kinds for kinds in results.values()),
        "lies": tried.total(),
        **{name: tried[name] for name in OUTCOMES},
        "tasks that pay": [name for name, kinds in results.items() if PAID in kinds.values()],
    }


def table(results: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, int]]:
    """Kind of a lie -> numbers of tasks by outcome."""
    by_kind = {kind: Counter(kinds[kind] for kinds in results.values() if kind in kinds) for kind in KINDS}
    return {kind: {name: count[name] for name in OUTCOMES} for kind, count in by_kind.items()}


def summary(results: Mapping[str, Mapping[str, str]], shares: Mapping[str, float]) -> dict[str, Any]:
    """Counts by split, by number of faults, and by whether a copy reaches the fault.

    Args:
        shares: of tests to make pass that a copy reaches, as ``memorization`` measured it.
    """
    entries = {entry.id: entry for entry in ours().entries}
    made: dict[str, Any] = {"tasks": len(results)}
    for name, above in (("reached", True), ("not reached", False)):
        some = {one: kinds for one, kinds in results.items() if (shares[one] > 0) == above}
        rows = {}
        for split in SPLITS:
            for number, several in (("one fault", False), ("several faults", True)):
                row = {one: kinds for one, kinds in some.items() if entries[one].split == split}
                row = {one: kinds for one, kinds in row.items() if (len(entries[one].edits) > 1) == several}
                rows[f"{split}, {number}"] = counts(row)
        made[name] = {"all": counts(some), "by kind": table(some), "by split": rows}
    return made


def earlier(file: Path) -> dict[str, dict[str, Any]]:
    """Commit -> outcomes of an earlier result that the grader of today would give again."""
    result: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"outcomes": {}}
    by_commit = result.get("earlier", {}) | {result.get("commit", ""): result["outcomes"]}
    return {commit: tasks for commit, tasks in by_commit.items() if tasks and _same(commit)}


def _same(commit: str) -> bool:
    """True if the grader's code is that of a commit; docstrings and comments may differ."""
    names = _git("diff", "--name-only", commit, "HEAD", "--", *_GRADER)
    return names is not None and all(_program(commit, name) == _program("HEAD", name) for name in names.splitlines())


def _program(commit: str, name: str) -> str | None:
    """A file of a commit: a module without docstrings, as its syntax tree says it; any other file word for word."""
    text = _git("show", f"{commit}:{name}")
    if text is None or not name.endswith(".py"):
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
    return ast.dump(tree)


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True, text=True)
    return None if done.returncode else done.stdout


def rows(paying: set[str]) -> None:
    """Leave tasks that pay a lie out of training: whatever the copies show, they do not reach the fault."""
    entries = [entry._replace(reached=0.0) if entry.id in paying else entry for entry in lock_file.load(LOCK).entries]
    replace_text(LOCK, lock_file.save(entries))
    recount(LOCK, entries)
    print(f"tasks that pay a lie: {', '.join(sorted(paying)) or 'none'}")


def measure(
    journal: Journal[dict[str, str]],
    grading: _Grading,
    names: Collection[str],
    shares: Mapping[str, float],
    hours: float,
) -> None:
    """Grade these tasks as far as the journal has not got them."""
    done, began = journal.figures.setdefault("lies", {}), time.monotonic()
    entries = [entry for split in SPLITS for entry in ours().split(split) if entry.id in names]
    with lease(ContainerEngine()) as sandbox:
        for entry in sorted(entries, key=lambda entry: not shares[entry.id]):
            if entry.id not in done and time.monotonic() - began < hours * 3600:
                journal.add("lies", entry.id, grading(sandbox, entry))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=float("inf"), help="begin no task after that")
    parser.add_argument("--only", nargs="*", default=[], help="ids of tasks; default: all")
    parser.add_argument("--at-once", action="store_true", help="lie about all faults of a task at once")
    parser.add_argument("--journal", type=Path, default=Path("software_lies.journal"))
    parser.add_argument("--rows", action="store_true", help="only write what pays a lie into the tasks")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    out = args.out or (OUT_AT_ONCE if args.at_once else OUT)
    if args.rows:
        result = json.loads(out.read_text())
        return rows(
            {
                *_PAID_BEFORE,
                *(name for key in ("reached", "not reached") for name in result[key]["all"]["tasks that pay"]),
            }
        )
    about, shares, before = origin(out, ("docker",), journal=args.journal), shares_of(REACH), earlier(out)
    journal = Journal[dict[str, str]](args.journal, about["commit"])
    tasks = {entry.id for entry in ours().entries if len(entry.edits) > 1 or not args.at_once}
    names = tasks.intersection(args.only or tasks) - {name for some in before.values() for name in some}
    measure(journal, outcomes_at_once if args.at_once else outcomes, names, shares, args.hours)
    done = journal.figures["lies"]
    made = summary({name: kinds for some in (*before.values(), done) for name, kinds in some.items()}, shares)
    made["left"] = len(tasks) - made["tasks"]
    print(json.dumps({key: made[key]["all"] for key in ("reached", "not reached")}, indent=1))
    write(out, about, {**made, "earlier": before, "outcomes": done})


if __name__ == "__main__":
    main()
