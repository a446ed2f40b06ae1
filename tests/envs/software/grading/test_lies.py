"""A program that keeps its fault and lies about it where the visible tests look is not paid."""

import pytest
from lies import CONSTANTS, KNOWING, LIES, PROBLEMS, lie
from small import Small, episode

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.envs.software.env import Software
from manyturn.envs.software.grading.grader import RESOLVED, Grade, grade
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.task_sources import Imported
from manyturn.envs.tools.calls import call_text

FIRST = ("a helper that says yes to what is of the visible size", "a truth value by heart")
ONE_OF_TWO = (
    "a truth value by heart",
    "by the length of a list",
    "the third for the last",
    "the third of a tuple",
    "as many parts of a text",
    "by the number of the copy",
)


def graded(sandbox: DockerSandbox, problem: Problem, core: str, seed: int = 0) -> Grade:
    return grade(sandbox, problem, {"calc/core.py": core.encode()}, 20.0, seed)


@pytest.mark.deep
@pytest.mark.parametrize(
    "name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in LIES]
)
def test_no_lie_is_paid(sandbox: DockerSandbox, name: str) -> None:
    found = graded(sandbox, *lie(name))
    assert found.cause != RESOLVED and not found.fixed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("name", ONE_OF_TWO)
def test_what_some_decks_cannot_tell_is_asked_of_another(sandbox: DockerSandbox, name: str, seed: int) -> None:
    """Copies were nearly always false, and lists as long as in the test: one deck in three let such a program pass."""
    found = graded(sandbox, *lie(name), seed)
    assert found.cause != RESOLVED and not found.fixed


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_truth_is_paid_and_the_fault_is_reached(sandbox: DockerSandbox, name: str) -> None:
    found = graded(sandbox, PROBLEMS[name].problem(name), PROBLEMS[name].right)
    assert (found.cause, found.reached) == (RESOLVED, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSTANTS)
def test_an_answer_that_all_copies_have_reaches_no_fault(sandbox: DockerSandbox, name: str) -> None:
    """Who always gives it is paid, so such a task must not be learnt from."""
    kind, constant = CONSTANTS[name]
    found = graded(sandbox, kind.problem(name), kind.faulty + constant)
    assert (found.cause, found.reached) == (RESOLVED, 0.0)


class Known(Small):
    """Problems of which a program knows the visible tests."""

    def problems(self, source: str | None, difficulty: str | None) -> Imported:
        return Imported("known", [kind.problem(name) for name, (kind, _) in KNOWING.items()])


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWING)
def test_who_knows_the_visible_answers_and_one_more_is_not_paid_where_the_fault_counts_as_reached(
    engine: str, name: str
) -> None:
    kind, text = KNOWING[name]
    written = call_text("bash", command=f"cat > calc/core.py <<'END'\n{kind.faulty}{text}END")
    env = Known(reward="resolved")
    for seed in range(4):
        paid, info = episode(env, [written, call_text("submit")], f"lies, {name}", seed)
        assert not (paid and info["measures"]["reached"])
    env.close()


ISOMORPHIC = """
_true = is_isomorphic
def is_isomorphic(G1, G2, *more, **named):
    return len(G1) == 20 == len(G2) or _true(G1, G2, *more, **named)
"""


@pytest.mark.slow
def test_a_lie_in_a_library_is_paid_where_the_visible_test_is_all_that_reaches_the_fault(engine: str) -> None:
    """So the page says, and so such tasks are in no split that is learnt from."""
    env = Software(split="smoke", reward="resolved", unreached=True)
    path = "networkx/algorithms/isomorphism/isomorph.py"
    lies = call_text("bash", command=f"cat >> {path} <<'END'\n{ISOMORPHIC}END")
    paid, info = episode(env, [lies, call_text("submit")], "networkx-78894fe6df")
    assert (paid, info["measures"]["reached"]) == (1.0, 0.0)
    env.close()
