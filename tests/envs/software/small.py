"""A small problem, and the environment that has it alone; its rules on what counts are lax on purpose."""

from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.envs.software.env import Software
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.task_sources import Imported

CORE = '''"""Sums."""


def add(a, b):
    return a - b


def total(numbers):
    result = 0
    for number in numbers:
        result = add(result, number)
    return result


def double(a):
    return a * 2
'''
MENDED = CORE.replace("a - b", "a + b")
TESTS = """import unittest

import pytest

from calc.core import add, double, total


def test_add():
    assert add(1, 2) == 3


class TestTotal(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)


@pytest.mark.parametrize("a", [1, "x y", "[é::]"])
def test_double(a):
    assert double(a) == a + a


@pytest.mark.xfail
def test_not_done_yet():
    assert add("a", 1) == "a1"
"""
INI = "[pytest]\npythonpath = .\n"
FAIL = ("tests/test_core.py::test_add", "tests/test_core.py::TestTotal::test_total")
PASS = (
    "tests/test_core.py::test_double[1]",
    "tests/test_core.py::test_double[x y]",
    "tests/test_core.py::test_double[[\\xe9::]]",
    "tests/test_core.py::test_not_done_yet",
)


def small(**other: object) -> Problem:
    files = {"calc/__init__.py": "", "calc/core.py": CORE, "tests/test_core.py": TESTS, "pytest.ini": INI}
    problem = Problem(
        id="small",
        statement="`add` subtracts.",
        files={path: text.encode() for path, text in files.items()},
        tests={"tests/test_core.py": TESTS.encode(), "pytest.ini": INI.encode()},
        fail_to_pass=FAIL,
        pass_to_pass=PASS,
        fix={"calc/core.py": MENDED.encode()},
        counts=lambda path: not path.startswith("tests/"),
    )
    return problem._replace(**other)  # type: ignore[arg-type]


def two() -> Sequence[Problem]:
    """The small problem and a larger relative of it, whose tests are shown too."""
    mended = CORE.replace("return a - b", "return a + b").replace("a * 2", "a * 3")
    files = {**small().files, "calc/core.py": mended.encode()}
    other = small(
        id="twice",
        statement="`double` does more than that.",
        files=files,
        fail_to_pass=PASS[:2],
        pass_to_pass=FAIL,
    )
    return [small(), other]


class Small(Software):
    """Two problems."""

    def problems(self, source: str | None, difficulty: str | None) -> Imported:
        return Imported("small", two())


def episode(
    env: Software, actions: Sequence[str], task: str = "small", seed: int = 0
) -> tuple[float, Mapping[str, Any]]:
    """Return and last info of an episode."""
    env.reset(seed=seed, options={"task": task})
    paid, info = 0.0, dict[str, Any]()
    for action in actions:
        _, reward, ended, truncated, info = env.step(action)
        paid += reward
        if ended or truncated:
            break
    return paid, info
