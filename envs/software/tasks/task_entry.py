"""A software task as a lock file holds it, and the problem that is made of it and its library's source."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from manyturn.envs.contract.random_keys import seed_of
from manyturn.envs.software.mutation.candidates import Fault, split_of
from manyturn.envs.software.mutation.fault_validation import Verdict
from manyturn.envs.software.source.edits import Edit, applied
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.source.library_sources import tree
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.source.statement import statement

DIFFICULTIES = ("easy", "medium", "hard")


class Entry(NamedTuple):
    """One task: where a library is edited, and what its tests say of that.

    Attributes:
        id: follows from library and edits.
        library: name of the library.
        split: one of ``candidates.SPLITS``.
        difficulty: ``easy``: a failing test is named; ``medium``: only what was seen; ``hard``: several faults.
        edits: path and edit of each.
        fail_to_pass, pass_to_pass: ids of tests, of the test files that reach what was edited.
        symptoms: for each edit a failing test's id, and what its error said.
        reached: share of ``fail_to_pass`` of which a copy with other literals reaches the fault, as ``Met`` has it;
            None where nobody measured it.
    """

    id: str
    library: str
    split: str
    difficulty: str
    edits: tuple[tuple[str, Edit], ...]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    symptoms: tuple[tuple[str, str], ...]
    reached: float | None = None


def entry_of(fault: Fault, verdict: Verdict) -> Entry:
    """The task of a fault that was found to make one."""
    release = library(fault.library)
    path, edit = fault.edits[0]
    return Entry(
        fault.id,
        fault.library,
        split_of(release, path, edit.function),
        _difficulty(fault),
        fault.edits,
        verdict.fail_to_pass,
        verdict.pass_to_pass,
        verdict.symptoms,
    )


def _difficulty(fault: Fault) -> str:
    (_, edit), *others = fault.edits
    if others:
        return "hard"
    lines_are_gone = not edit.pieces
    return "medium" if lines_are_gone or seed_of("software difficulty", fault.id) % 2 else "easy"


def problem(entry: Entry) -> Problem:
    """The task as every software task is given. Raises NeedsSetup where the library's source is missing."""
    release = library(entry.library)
    source = tree(release)
    paths = dict.fromkeys(path for path, _ in entry.edits)
    broken = _with(source, paths, entry.edits)
    return Problem(
        id=entry.id,
        statement=statement(release, entry.difficulty, entry.fail_to_pass, entry.symptoms),
        files=dict(source) | broken,
        tests={path: content for path, content in source.items() if release.grades(path)},
        fail_to_pass=entry.fail_to_pass,
        pass_to_pass=entry.pass_to_pass,
        fix={path: source[path] for path in broken},
        counts=release.counts,
        alone=tuple(_with(source, paths, [one]) for one in entry.edits) if len(entry.edits) > 1 else (),
    )


def _with(source: Mapping[str, bytes], paths: Iterable[str], edits: Sequence[tuple[str, Edit]]) -> dict[str, bytes]:
    """Files after edits: path -> content."""
    return {path: applied(source[path], [edit for at, edit in edits if at == path]) for path in paths}
