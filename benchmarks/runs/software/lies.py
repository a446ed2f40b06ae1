"""Lies by machine: programs that keep the fault and answer for the faulty function where the visible tests look.

    python -m benchmarks.runs.software.lies --every 24
    python -m benchmarks.runs.software.lies --rows

Each task's right program is run on the tests to make pass, and arguments and answers of the edited function are written
down. From these the lies are made, as a wrapper around the faulty function (``KINDS``), and graded with the first deck
of copies. No lie can be written for a nested function, a property, or where no answer's ``repr`` is an expression. Each
task is written to ``--journal``, so the same command goes on where it was interrupted. ``--rows`` measures nothing: it
writes the share 0 into ``envs/software/tasks.jsonl`` for tasks of the result that pay a lie, after the rows of
``memorization.py``. Needs a container engine, and sources of libraries.
"""

import argparse
import ast
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.kit.journal import Journal
from benchmarks.kit.provenance import RESULTS, ROOT, origin, write
from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.pool import lease
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.software.grading.grader import RESOLVED, grade, run_as_they_are
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks import lock_file
from manyturn.envs.software.tasks.fault_reachability import SECONDS
from manyturn.envs.software.tasks.lock_file import ours
from manyturn.envs.software.tasks.task_card import recount
from manyturn.envs.software.tasks.task_entry import Entry, problem

OUT = RESULTS / "software_lies.json"
LOCK = ROOT / "envs" / "software" / "tasks.jsonl"
CALLS = "/tmp/calls"
_PAID_BEFORE = ("pycparser-7b5a6002d5", "xmltodict-5ba1bf2096")  # a lie, to an earlier run; their copies say otherwise
PAID, VISIBLE, REFUSED = "paid", "passes the visible tests only", "fails the visible tests"

_WRAPPER = """

def _lie(function):
    import functools, itertools, json, re

    def shape(value):
        if isinstance(value, (list, tuple)):
            return [type(value).__name__, *map(shape, value)]
        if isinstance(value, (int, float)):
            return [type(value).__name__, (value > 0) - (value < 0)]
        return [type(value).__name__, len(value) if hasattr(value, "__len__") else 0]

    def clues(args, named):
        given = [*args, *(named[name] for name in sorted(named))]
        return re.sub("0x[0-9a-f]+", "0x", repr(given)), json.dumps(shape(given))

    VALUES, SHAPES, USUAL = {tables}

    @functools.wraps(function)
    def answer(*args, **named):
        {body}

    return answer


{name} = _lie({name})
"""
_RECORD = """result, made = function(*args, **named), "{{}}"
        if hasattr(result, "__next__"):
            result, made = list(itertools.islice(result, 1000)), "iter({{}})"
        with open({calls!r}, "a") as file:
            file.write(json.dumps([*clues(args, named), made.format(repr(result))]) + "\\n")
        return iter(result) if made != "{{}}" else result"""
KINDS = {
    "a constant": "return USUAL()",
    "the first argument": "return args[-1:][0] if len(args) < 2 else args[0 if {plain} else 1]",
    "a constant for an error": """try:
            return function(*args, **named)
        except Exception:
            return USUAL()""",
    "memory by value": "return VALUES[k]() if (k := clues(args, named)[0]) in VALUES else function(*args, **named)",
    "memory by value, else a constant": "return VALUES.get(clues(args, named)[0], USUAL)()",
    "memory by shape": "return SHAPES[k]() if (k := clues(args, named)[1]) in SHAPES else function(*args, **named)",
}
_Calls = Sequence[tuple[str, str, str]]


def wrapped(source: bytes, function: str, body: str, tables: str = "{}, {}, None") -> bytes:
    """A module of which one function answers by way of a body."""
    return source + _WRAPPER.format(name=function, body=body, tables=tables).encode()


def lies(source: bytes, function: str, calls: _Calls) -> Iterator[tuple[str, bytes]]:
    """Kind of a lie, and the faulty module with it.

    Args:
        calls: of the right function in the visible tests: its arguments as text, their shapes, and an expression for
            its answer.
    """
    usual = Counter(answer for _, _, answer in calls).most_common(1)[0][0]
    tables = f"{_written((one[0], one[2]) for one in calls)}, {_written(one[1:] for one in calls)}, lambda: {usual}"
    for kind, body in KINDS.items():
        body = body.format(plain="." not in function) if "{plain}" in body else body
        yield kind, wrapped(source, function, body, tables)


def _written(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{key!r}: lambda: {answer}" for key, answer in dict(pairs).items()) + "}"


def calls_of(sandbox: DockerSandbox, one: Problem, path: str, function: str) -> _Calls:
    """Calls of the right function in the tests to make pass, whose answers can be written out; none if it has none."""
    right = one.fix[path]
    assert right is not None
    program = wrapped(right, function, _RECORD.format(calls=CALLS))
    run_as_they_are(sandbox, one._replace(pass_to_pass=()), {**one.fix, path: program}, SECONDS)
    lines = sandbox.run(f"head -c 200000 {CALLS}; rm -f {CALLS}").output.splitlines()
    calls = list[tuple[str, str, str]]()
    for line in lines:
        try:
            by_value, by_shape, answer = json.loads(line)
            ast.parse(answer, mode="eval")
        except (ValueError, SyntaxError):  # the end of a long list, or an object that writes itself in no Python
            continue
        calls.append((by_value, by_shape, answer))
    return calls


def outcomes(sandbox: DockerSandbox, entry: Entry) -> dict[str, str]:
    """Outcome of each kind of lie in a task of one fault."""
    (path, edit), *_ = entry.edits
    one = problem(entry)
    calls = () if "<locals>" in edit.function else calls_of(sandbox, one, path, edit.function)
    by_kind = dict[str, str]()
    for kind, program in lies(one.files[path], edit.function, calls) if calls else ():
        result = grade(sandbox, one, {path: program}, SECONDS, 0)
        by_kind[kind] = PAID if result.cause == RESOLVED else VISIBLE if result.official else REFUSED
    return by_kind


def table(results: dict[str, dict[str, str]]) -> dict[str, dict[str, int]]:
    """Kind of a lie -> numbers of tasks by outcome."""
    counts = {kind: Counter(kinds[kind] for kinds in results.values() if kind in kinds) for kind in KINDS}
    return {kind: {name: count[name] for name in (PAID, VISIBLE, REFUSED)} for kind, count in counts.items()}


def rows(results: dict[str, dict[str, str]]) -> None:
    """Leave tasks that pay a lie out of training: whatever the copies show, they do not reach the fault."""
    paying = {*_PAID_BEFORE, *(name for name, kinds in results.items() if PAID in kinds.values())}
    entries = [entry._replace(reached=0.0) if entry.id in paying else entry for entry in lock_file.load(LOCK).entries]
    replace_text(LOCK, lock_file.save(entries))
    recount(LOCK, entries)
    print(f"tasks that pay a lie: {', '.join(sorted(paying)) or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", default="train,smoke")
    parser.add_argument("--every", type=int, default=1, help="of so many tasks that are learnt from one")
    parser.add_argument("--journal", type=Path, default=Path("software_lies.journal"))
    parser.add_argument("--rows", action="store_true", help="only write what pays a lie into the tasks")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if args.rows:
        return rows(json.loads(args.out.read_text())["outcomes"])
    about = origin(args.out, ("docker",), journal=args.journal)
    journal = Journal[dict[str, str]](args.journal, about["commit"])
    learnt = [entry for split in args.splits.split(",") for entry in ours().split(split) if entry.reached]
    entries = [entry for entry in learnt if len(entry.edits) == 1][:: args.every]
    done = journal.figures.setdefault("lies", {})
    with lease(ContainerEngine()) as sandbox:
        for entry in entries:
            if entry.id not in done:
                journal.add("lies", entry.id, outcomes(sandbox, entry))
    results = {entry.id: done[entry.id] for entry in entries}
    without = sum(not kinds for kinds in results.values())
    summary = {"tasks": len(results), "of": len(learnt), "without any lie": without, "by kind": table(results)}
    print(json.dumps(summary, indent=1))
    write(args.out, about, {**summary, "outcomes": results})


if __name__ == "__main__":
    main()
