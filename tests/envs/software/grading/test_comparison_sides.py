"""No process meets both computed sides of a comparison, and no honest program fails because of that."""

import ast
import re

import numpy as np
import pytest
from small import CORE, MENDED, Small, episode, small
from test_word_between_runs import ALL_PASS, written

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.envs.software.grading.assertion_questions import questions
from manyturn.envs.software.grading.comparison_sides import divided
from manyturn.envs.software.grading.grader import RESOLVED, grade
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.tools.calls import call_text

SUBMIT = call_text("submit")


def texts(body: str) -> tuple[str, str]:
    """Of the body of a test, as the runs have it; the left sides first."""
    text = f"def test_it(given):\n{body}".replace("\n", "\n    ").encode()
    both = divided(questions(text).text, (), np.random.default_rng(0))
    one, other = ("\n".join(line[4:] for line in text.decode().splitlines()[1:]) for text in both.texts)
    return (one, other) if not both.first or both.first[min(both.first)] == 0 else (other, one)


def test_each_run_has_one_side_alone() -> None:
    assert texts("assert double(3) == add(3, 3)") == ("__ask__.value(1, (double(3)))", "__ask__.value(1, (add(3, 3)))")
    assert texts("assert double(given) == given + given")[0] == "__ask__.value(1, (double(given)))"


def test_what_only_the_other_side_needs_goes_with_it() -> None:
    left, right = texts("start = seed()\nwant = 0\nwant += more(start)\nfound = double(3)\nassert found == want")
    assert left == "pass\npass\npass\nfound = double(3)\n__ask__.value(1, (found))"
    assert right == "start = seed()\nwant = 0\nwant += more(start)\npass\n__ask__.value(1, (want))"


@pytest.mark.parametrize(
    "body",
    [
        "assert f(3) == given",  # it has a name, and stands there anyway
        "want = [1, 2]\nassert f(3) == want",
        "want = g(3)\nprint(want)\nassert f(3) == want",
        "for want in g(3):\n    assert f(3) == want",
        "assert f(3) == sorted(given)",
        "def inner():\n    return want\nwant = g(3)\nassert f(inner) == want",
    ],
)
def test_what_cannot_be_taken_out_is_asked_as_before(body: str) -> None:
    left, right = texts(body)
    assert left == right and "__ask__.both(1, (" in left


def test_either_side_may_come_first() -> None:
    text = questions("\n".join(["def test():", *(f"    assert f({n}) == g({n})" for n in range(64))]).encode()).text
    found = divided(text, {3}, np.random.default_rng(0))
    assert 16 < sum(found.first.values()) < 48 and 3 not in found.first
    for one in found.texts:
        ast.parse(one)
        assert len(re.findall(rb"[fg]\(\d+\)", one)) == 65


# ---- in a sandbox ---------------------------------------------------------------------------------------------

# Sends the right side for both, where both are asked; a value that is asked alone is as it is.
SENDS_ONE = f"""{ALL_PASS}
import builtins
asker = builtins.__dict__.get("__ask__")
if asker is not None:
    def both(self, number, left, right):
        self.value(number, right)
        self.answers[-1] = [number, [self.answers[-1][1]] * 2]
    type(asker).both = both
"""


@pytest.mark.deep
def test_a_broken_side_is_not_paid_for_the_other(engine: str) -> None:
    """The fault is fixed, and another test's function is broken."""
    env = Small(reward="resolved")
    broken = SENDS_ONE + MENDED.replace("return a * 2", "return 'broken'")
    paid, info = episode(env, [written("calc/core.py", broken), SUBMIT])
    assert (paid, info["success"]) == (0.0, False)
    env.close()


TESTS = """import pytest
from calc.core import add, double, total


def test_names():
    start = [1]
    want = total([3, 4]) * double(1)
    found = add(7, 7)
    assert found == want


def test_what_one_side_takes_away():
    stack, other = [1, 2, 3], [1, 2, 3]
    assert add(stack.pop(), 0) == double(other.pop()) // 2
    assert len(stack) + add(0, 0) == len(other) + double(0)


def test_two_from_one_stack():
    stack = [1, 2, 3]
    assert add(stack.pop(), 0) == total([stack.pop(), 1])


def test_a_name_in_passing():
    assert (found := add(1, 2)) == total([found])


def test_a_side_that_raises():
    with pytest.raises(TypeError):
        assert add(1, 1) == add("a", double(1))


class Sum:
    def __init__(self, a, b):
        self.result = add(a, b)

    def __eq__(self, other):
        return self.result == other.result

    def __repr__(self):
        return "Sum"


def test_objects():
    assert Sum(1, 2) == Sum(*reversed([1, 2]))


def test_drawn():
    import random
    drawn = random.random()
    assert total([drawn, 1]) == add(1, drawn)


def test_the_clock():
    import time
    assert add(time.time(), 0) < double(time.time())
    assert add(time.perf_counter(), 0) == time.perf_counter() or add(0, 0) == double(0)


@pytest.mark.parametrize("a", range(3))
def test_chained(a):
    assert add(a, a) == double(a) == total([a, a])
    assert add(a, a) in [double(a), total([a])]
    assert add(a, 1) != double(a + 1) + 1 and add(a, a) == double(a)
"""
NAMES = [line[4 : line.index("(")] for line in TESTS.splitlines() if line.startswith("def ")]


def two_sided() -> Problem:
    tests = {**small().tests, "tests/test_core.py": TESTS.encode()}
    ids = [f"tests/test_core.py::{name}" for name in NAMES if name != "test_chained"]
    ids += [f"tests/test_core.py::test_chained[{a}]" for a in range(3)]
    fails = tuple(one for one in ids if one.endswith(("names", "takes_away")))
    files = {**small().files, **tests}
    return small(
        id="two sides", files=files, tests=tests, fail_to_pass=fails, pass_to_pass=tuple(set(ids) - set(fails))
    )


@pytest.mark.deep
def test_what_a_side_does_besides_fails_no_honest_program(sandbox: DockerSandbox) -> None:
    problem = two_sided()
    for text in (MENDED, MENDED.replace("return a * 2", "return add(a, a)").replace("a + b", "b + a")):
        found = grade(sandbox, problem, {"calc/core.py": text.encode()}, 20.0, 0)
        assert (found.cause, found.detail) == (RESOLVED, "")
    assert grade(sandbox, problem, {"calc/core.py": CORE.encode()}, 20.0, 0).cause != RESOLVED
