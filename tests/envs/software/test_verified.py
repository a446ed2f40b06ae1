"""Tasks are run again: as given their FAIL_TO_PASS tests fail, as released all their tests pass."""

import contextlib

import pytest

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.envs.contract.random_keys import seed_of
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.tasks import lock_file
from manyturn.envs.software.tasks.task_entry import Entry, problem
from manyturn.envs.software.testing.library_test_runner import Trials, Wanted

OURS = lock_file.ours()
SMOKE = OURS.split("smoke")


@pytest.fixture(scope="module")
def trials_of(engine):
    """The one container of each library."""
    made: dict[str, Trials] = {}
    with contextlib.ExitStack() as stack:

        def trials(name: str) -> Trials:
            if name not in made:
                made[name] = stack.enter_context(
                    Trials(library(name), lambda: DockerSandbox(ContainerEngine(image=engine)))
                )
            return made[name]

        yield trials


def files_of(*entries: Entry) -> tuple[str, ...]:
    """The test files that tell whether these tasks are done."""
    tests = (test for entry in entries for test in entry.fail_to_pass + entry.pass_to_pass)
    return tuple(sorted({test.partition("::")[0] for test in tests}))


def check_given(entry: Entry, trials: Trials) -> None:
    given = problem(entry)
    (run,) = trials.run(Wanted(files_of(entry)), {path: given.files[path] for path in given.fix})
    assert set(entry.pass_to_pass) <= run.passed()
    assert not set(entry.fail_to_pass) & (run.passed() | run.skipped())


def check_released(entries: list[Entry], trials: Trials) -> None:
    (run,) = trials.run(Wanted(files_of(*entries)), problem(entries[0]).fix)
    assert {test for entry in entries for test in entry.fail_to_pass + entry.pass_to_pass} <= run.passed()


@pytest.mark.deep
@pytest.mark.parametrize("entry", SMOKE, ids=[entry.id for entry in SMOKE])
def test_a_smoke_task_fails_as_given(entry, trials_of):
    check_given(entry, trials_of("networkx"))


@pytest.mark.deep
def test_smoke_tasks_pass_as_released(trials_of):
    check_released(SMOKE, trials_of("networkx"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OURS.releases if name != "networkx"])
def test_tasks_of_a_library_fail_as_given_and_pass_as_released(name, trials_of, sources):
    assert sources(name)
    every = [entry for entry in OURS.entries if entry.library == name]
    check_released(every, trials_of(name))
    for entry in sorted(every, key=lambda entry: seed_of("sample", entry.id))[:3]:
        check_given(entry, trials_of(name))
