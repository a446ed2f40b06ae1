"""Sources of the software environment's tasks: the lock file, or another project's problems."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.registration.regular_file import regular_file
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.source.library_sources import MEND, missing
from manyturn.envs.software.source.lru_cache import RecencyCache
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks import importers, task_entry
from manyturn.envs.software.tasks.drills import Drills
from manyturn.envs.software.tasks.fault_reachability import UNREACHED
from manyturn.envs.software.tasks.lock_file import load, ours
from manyturn.envs.software.tasks.task_entry import DIFFICULTIES, Entry


class Problems(Protocol):
    """Tasks, and the problem that each of them is.

    Attributes:
        tasks: split -> its tasks, for the splits that have any.
        absent: split -> what has to be done to have it.
        shows_tests: whether the files that an agent gets have the tests that decide.
    """

    tasks: Mapping[str, Sequence[Task]]
    absent: Mapping[str, str]
    shows_tests: bool

    def problem(self, task: Task) -> Problem:
        """The problem of a task."""
        ...


def problems_of(source: str | None, difficulty: str | None = None) -> Problems:
    """The problems of a source; of a file that ``manyturn tasks software`` made, ``tasks:FILE``.

    Raises NeedsSetup where its files are missing.
    """
    if source is None:
        return Mined(ours().entries, difficulty)
    if source.startswith("tasks:"):
        return Mined(load(regular_file(Path(source.removeprefix("tasks:")), "software tasks")).entries, difficulty)
    if difficulty is not None:
        raise ValueError(f"the problems of {source} have no difficulty: leave out one of source and difficulty")
    if source == "drills":
        return Drills()
    return Imported(source.partition(":")[0], importers.problems(source))


LEARNT = ("train", "smoke")
"""Splits that have no tasks which can be passed without a fix, unless they are asked for."""


def without_unreached(tasks: Mapping[str, Sequence[Task]]) -> dict[str, Sequence[Task]]:
    """Tasks by split, less those in splits that are learnt from whose fault no other inputs reach."""
    entries = {
        split: [task for task in some if split not in LEARNT or UNREACHED not in task.tags]
        for split, some in tasks.items()
    }
    return {split: some for split, some in entries.items() if some}


class Mined:
    """Faults put into pinned libraries; a split of which a library's source is missing is absent.

    Raises ValueError for a difficulty that there is not, NeedsSetup if every split is absent.
    """

    shows_tests = True

    def __init__(self, entries: Sequence[Entry], difficulty: str | None = None):
        if difficulty is not None and difficulty not in DIFFICULTIES:
            raise ValueError(unknown("difficulty", difficulty, DIFFICULTIES))
        chosen = [entry for entry in entries if difficulty in (None, entry.difficulty)]
        self._entries = {entry.id: entry for entry in chosen}
        self._made = RecencyCache[Problem](64)
        by_split: dict[str, list[Entry]] = {}
        for one in chosen:
            by_split.setdefault(one.split, []).append(one)
        self.absent: Mapping[str, str] = {split: need for split, some in by_split.items() if (need := _need(some))}
        there = {split: some for split, some in by_split.items() if split not in self.absent}
        self.tasks: Mapping[str, Sequence[Task]] = {
            split: [_mined(one) for one in some] for split, some in there.items()
        }
        if not self.tasks:
            raise NeedsSetup(next(iter(self.absent.values()), "there are no software tasks of this difficulty"))

    def problem(self, task: Task) -> Problem:
        return self._made.made(task.id, lambda: task_entry.problem(self._entries[task.id]))


def _need(entries: Sequence[Entry]) -> str:
    """Steps to get the sources of these tasks; empty if none are needed."""
    lacking = missing([library(name) for name in sorted({entry.library for entry in entries})])
    names = ", ".join(library.name for library in lacking)
    return f"the sources of {names} are missing: {MEND}" if lacking else ""


def _mined(entry: Entry) -> Task:
    params = {"library": library(entry.library).pin, "edits": [[path, *edit] for path, edit in entry.edits]}
    tags = (entry.library, UNREACHED) if entry.reached == 0 else (entry.library,)
    return Task(entry.id, entry.split, params, entry.difficulty, tags)


class Imported:
    """Problems of another project: all of them are for testing, as their authors meant them.

    Args:
        source: name of the project, such as ``humanevalfix``.
        problems: its problems.
    """

    def __init__(self, source: str, problems: Sequence[Problem]):
        self._problems = {problem.id: problem for problem in problems}
        self.shows_tests = all(test.partition("::")[0] in p.files for p in problems for test in p.fail_to_pass)
        self.tasks: Mapping[str, Sequence[Task]] = {"test": [_imported(source, problem) for problem in problems]}
        self.absent: Mapping[str, str] = {}

    def problem(self, task: Task) -> Problem:
        return self._problems[task.id]


def _imported(source: str, problem: Problem) -> Task:
    content = digest(problem.statement, dict(problem.files), dict(problem.tests), problem.fail_to_pass)
    return Task(problem.id, "test", {"problem": problem.id, "content": content}, tags=(source,))
