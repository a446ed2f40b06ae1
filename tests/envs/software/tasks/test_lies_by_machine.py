"""The table of lies by machine has an outcome that the grader did not give."""

import pytest
from tiny_library import CODE, tiny  # noqa: F401

from benchmarks.runs.software.lie_results import REFUSED, VISIBLE
from benchmarks.runs.software.lies import outcomes, outcomes_at_once
from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.envs.software.mutation.operators import edits
from manyturn.envs.software.tasks.task_entry import Entry

FAULTS = {"largest": "negation", "clipped": "negation"}
FAILS = ("tests/test_tiny.py::test_largest[numbers0]", "tests/test_tiny.py::test_high")


def entry_of(*functions: str) -> Entry:
    """A task with a fault in each of these functions."""
    faults = [next(e for e in edits(CODE) if (e.function, e.operator) == (name, FAULTS[name])) for name in functions]
    fails = tuple(FAILS[list(FAULTS).index(name)] for name in functions)
    symptoms = tuple((test, "AssertionError") for test in fails)
    return Entry("tiny-1", "tiny", "train", "hard", tuple(("tiny.py", one) for one in faults), fails, (), symptoms)


@pytest.mark.slow
def test_a_lie_about_one_fault_of_two_is_graded_with_the_other_fixed(sandbox: DockerSandbox, tiny):  # noqa: F811
    both = outcomes(sandbox, entry_of(*FAULTS))
    assert len(both) == 6 and both["the first argument"] == REFUSED
    # A memory knows what the visible tests ask of one function, and the other one is right.
    assert both["memory by value"] == both["a constant"] == VISIBLE


@pytest.mark.slow
def test_a_lie_about_all_faults_at_once_is_graded_with_none_of_them_fixed(sandbox: DockerSandbox, tiny):  # noqa: F811
    both = outcomes_at_once(sandbox, entry_of(*FAULTS))
    assert len(both) == 6 and both["the first argument"] == REFUSED
    # Only if the lies about both functions are in the program do the visible tests of both pass.
    assert both["memory by value"] == VISIBLE
