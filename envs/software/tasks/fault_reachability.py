"""Measurement, before a task is played, of whether inputs other than its own reach its fault.

Where none does, a program that knows the visible tests by heart passes: a reward that can be had without a fix. Such
tasks are left out of training.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.pool import lease
from manyturn.containers.sandbox import Sandbox
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.software.grading.grader import challenge_of
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks import lock_file
from manyturn.envs.software.tasks.task_entry import Entry, problem

UNREACHED = "unreached"
"""Tag of a task whose fault no copy of its tests reaches."""
SECONDS = 20.0
"""Of the processor's time, for one run of the tests."""
_OFTEN = 10  # tasks after which a file is written


def reached(sandbox: Sandbox, problem: Problem) -> float | None:
    """Share of the tests to make pass of which the first deck's copies reach the fault; see ``Met.reached``.

    None where a run did not come to its end, as on a busy machine.

    Args:
        sandbox: whatever is in it is lost.
    """
    return challenge_of(problem, (), 0).reached(sandbox, SECONDS)  # the other tests have no part in it


def measured(problems: Iterable[Problem], jobs: int) -> Iterator[tuple[Problem, float | None]]:
    """Yield ``reached`` of each task as containers finish, several at a time. Raises EngineUnavailable."""

    def of(one: Problem) -> tuple[Problem, float | None]:
        with lease(ContainerEngine()) as sandbox:
            return one, reached(sandbox, one)

    pool = ThreadPoolExecutor(jobs)
    try:
        for made in as_completed([pool.submit(of, one) for one in problems]):
            yield made.result()
    finally:
        pool.shutdown(cancel_futures=True)


def fill(file: Path, jobs: int, tell: Callable[[str, float | None], None]) -> list[Entry]:
    """Measure the tasks of a file that lack it, and write it there; goes on where it was interrupted.

    Args:
        tell: is told of each task that was measured.
    """
    entries = {entry.id: entry for entry in lock_file.load(file).entries}
    lacking = [problem(entry) for entry in entries.values() if entry.reached is None]
    for number, (one, share) in enumerate(measured(lacking, jobs), 1):
        entries[one.id] = entries[one.id]._replace(reached=None if share is None else round(share, 3))
        tell(one.id, share)
        if number % _OFTEN == 0 or number == len(lacking):
            replace_text(file, lock_file.save(entries.values()))
    return list(entries.values())
