"""Drills: a fault in one of three short functions, shown with the test that fails. Made here, for a beginner.

One short action fixes it, ``edit calc.py 'a - b' 'a + b'``, another hands it in. Everything else is as in a real task.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from manyturn.envs.contract.tasks.task import SPLITS, Task, split_of
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.source.text_sanitizer import numbered

FILE, TESTS = "calc.py", "test_calc.py"


class Function(NamedTuple):
    """``def name(parameters): return left SIGN right``, and faulty signs in place of the true one."""

    name: str
    parameters: str
    left: str
    sign: str
    right: str
    faults: tuple[str, ...]
    call: str
    result: str

    def body(self, sign: str) -> str:
        return f"{self.left} {sign} {self.right}"

    def text(self, sign: str) -> str:
        return f"def {self.name}({self.parameters}):\n    return {self.body(sign)}\n"

    def test(self) -> str:
        return f"def test_{self.name}():\n    assert {self.call} == {self.result}\n"


FUNCTIONS = (
    Function("add", "a, b", "a", "+", "b", ("-", "*"), "add(7, 2)", "9"),
    Function("less", "c, d", "c", "-", "d", ("+", "*"), "less(7, 2)", "5"),
    Function("area", "w, h", "w", "*", "h", ("+", "-"), "area(7, 2)", "14"),
    Function("share", "n, k", "n", "//", "k", ("%", "*"), "share(7, 2)", "3"),
    Function("rest", "p, q", "p", "%", "q", ("//", "*"), "rest(7, 2)", "1"),
    Function("below", "x, y", "x", "<", "y", (">", "=="), "below(2, 7)", "True"),
    Function("same", "e, f", "e", "==", "f", ("!=", "<"), "same(7, 7)", "True"),
    Function("both", "g, i", "g", "and", "i", ("or", "!="), "both(True, False)", "False"),
    Function("either", "j, m", "j", "or", "m", ("and", "=="), "either(True, False)", "True"),
    Function("last", "items", "items[len(items)", "-", "1]", ("+", "//"), "last([7, 2])", "2"),
)


class Drills:
    """All choices of three functions, each with every fault; see ``tasks.Problems``."""

    shows_tests = True

    def __init__(self) -> None:
        tasks: dict[str, list[Task]] = {split: [] for split in SPLITS}
        for task in _tasks():
            tasks[task.split].append(task)
        self.tasks: Mapping[str, Sequence[Task]] = tasks
        self.absent: Mapping[str, str] = {}

    def problem(self, task: Task) -> Problem:
        return _problem(task.id, task.params["functions"], task.params["faulty"], task.params["sign"])


def _tasks() -> Iterator[Task]:
    for some in combinations(range(len(FUNCTIONS)), 3):
        for faulty in some:
            for sign in FUNCTIONS[faulty].faults:
                task = Task("", "", {"functions": list(some), "faulty": faulty, "sign": sign})
                split = split_of(task.content)
                yield Task(f"{split}/{task.content[:10]}", split, task.params, "drill", (FUNCTIONS[faulty].name,))


def _problem(name: str, functions: Sequence[int], faulty: int, sign: str) -> Problem:
    some = [FUNCTIONS[number] for number in functions]
    wrong = FUNCTIONS[faulty]
    mended = "\n\n".join(one.text(one.sign) for one in some)
    broken = "\n\n".join(one.text(sign if one is wrong else one.sign) for one in some)
    tests = f"from calc import {', '.join(one.name for one in some)}\n\n\n" + "\n\n".join(one.test() for one in some)
    shown = numbered(broken.splitlines(), 1)
    return Problem(
        id=name,
        statement=f"{FILE}:\n{shown}\n\nThis fails:\n{wrong.test()}",
        files={FILE: broken.encode(), TESTS: tests.encode()},
        tests={TESTS: tests.encode()},
        fail_to_pass=(f"{TESTS}::test_{wrong.name}",),
        pass_to_pass=tuple(f"{TESTS}::test_{one.name}" for one in some if one is not wrong),
        fix={FILE: mended.encode()},
        counts=FILE.__eq__,
    )
