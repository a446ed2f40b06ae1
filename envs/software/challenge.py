"""A challenge: what a program has to compute before its patch is believed, and what the reference computes.

A problem's tests are turned into questions (``questions.py``): as they are, and for those that a patch has to make pass
in copies with other literals (``alterations.py``). The reference, which is the problem with its known fix, answers them
alone in a sandbox. A program is right if its answers are the same. Expected values are in neither file nor process, so
only who computes them has them; and in a copy they are not those of the test that an agent may have read.

Copies that the reference cannot answer, and answers in which it does not agree with itself, are left out.
"""

import math
from collections.abc import Sequence
from typing import Any

from manyturn.containers.sandbox import Sandbox
from manyturn.envs.contract.keys import digest, generator
from manyturn.envs.software.alterations import altered
from manyturn.envs.software.checked_run import PASSED, CheckedRun, run_tests
from manyturn.envs.software.marks import expected_to_fail
from manyturn.envs.software.problem import Problem
from manyturn.envs.software.questions import BOTH, RAISES, SEEN, Questions, questions
from manyturn.envs.software.recent import Recent
from manyturn.envs.software.tree import Changes, snapshot_of, with_changes

_COPIES = ((8, 9), (30, 4), (math.inf, 2))  # so many tests to make pass at most, so many copies
_REFERENCE_SECONDS, _SECONDS = 5.0, 8.0  # of the processor's time, of one test
_MORE = 2  # times the seconds of a run of the tests
_CLOSE, _NEAR_ZERO = 1e-6, 1e-9

_answered = Recent[CheckedRun](64)


class Challenge:
    """The questions of one problem.

    Args:
        seed: what is altered follows from it, and the problem.

    Attributes:
        chosen: ids of tests that are asked as they are.
        functions: ids without parameters of those in copies.
    """

    def __init__(self, problem: Problem, seed: int):
        self.problem = problem
        known_to_fail = expected_to_fail(problem.tests, problem.pass_to_pass)
        self.chosen = tuple(t for t in (*problem.fail_to_pass, *problem.pass_to_pass) if t not in known_to_fail)
        self._kept = frozenset(problem.pass_to_pass)
        paths = dict.fromkeys(test.partition("::")[0] for test in self.chosen)
        self._asked = {path: questions(problem.tests[path]) for path in paths if path in problem.tests}
        self._copies = dict[str, str]()  # path of a copy -> path of the file of tests
        self._files = {path: asked.text for path, asked in self._asked.items()}
        self.functions: tuple[str, ...] = ()
        self._alter(seed)
        self._key = digest(problem.id, self.chosen, self._files, dict(problem.fix))

    def _alter(self, seed: int) -> None:
        by_file: dict[str, dict[str, None]] = {}
        for test in self.problem.fail_to_pass:
            path, _, name = test.partition("[")[0].partition("::")
            by_file.setdefault(path, {})[name] = None
        number = next(copies for most, copies in _COPIES if len(self.problem.fail_to_pass) <= most)
        for path, names in by_file.items():
            if path not in self._asked:
                continue
            for copy in range(number):
                rng = generator("software challenge", seed, self.problem.id, path, copy)
                place = f"{path.removesuffix('.py')}_{copy}.py"
                self._copies[place] = path
                self._files[place] = altered(self._asked[path].text, names, copy, rng)
                self.functions += tuple(f"{place}::{name}" for name in names)

    def reference(self, sandbox: Sandbox, seconds: float) -> CheckedRun:
        """What the reference answers; whatever is in the sandbox is lost."""

        def run() -> CheckedRun:
            self._lay(sandbox, self.problem.fix)
            return run_tests(sandbox, self.chosen, _MORE * seconds, self.functions, _REFERENCE_SECONDS)

        return _answered.made(self._key, run, keep=lambda run: not run.timed_out)

    def again(self, sandbox: Sandbox, seconds: float, reference: CheckedRun) -> CheckedRun:
        """What the reference answers when it is asked as another program is."""
        return self.answers(sandbox, self.problem.fix, seconds, reference)

    def answers(self, sandbox: Sandbox, changes: Changes, seconds: float, reference: CheckedRun) -> CheckedRun:
        """What the problem's files with changes answer to what the reference answers; the sandbox is emptied first."""
        self._lay(sandbox, changes)
        asked = [test for test, outcome in reference.found.items() if outcome == PASSED]
        return run_tests(sandbox, asked, _MORE * seconds, each=_SECONDS)

    def _lay(self, sandbox: Sandbox, changes: Changes) -> None:
        files = {**self.problem.files, **self.problem.tests, **self._files}
        sandbox.restore(snapshot_of(with_changes(files, changes)))

    def wrong(self, reference: CheckedRun, found: CheckedRun) -> list[str]:
        """Ids of tests, of copies too, that the reference answers and another program does not, or not in that way."""
        return [test for test, told in reference.answers.items() if self._differs(test, reference, found, told)]

    def _differs(self, test: str, reference: CheckedRun, found: CheckedRun, told: list[Any]) -> bool:
        if reference.found[test] != PASSED:
            return False
        given = found.answers.get(test, [])
        if found.found.get(test) != PASSED or len(given) != len(told):
            return True
        asked, strict = self._of(test), test not in self._kept
        return not all(_agree(asked, one, other, strict) for one, other in zip(told, given, strict=True))

    def contradicts(self, test: str, reference: CheckedRun, found: CheckedRun) -> bool:
        """Whether a test that was said to pass cannot have passed with these answers."""
        if found.found.get(test) != PASSED:
            return True
        told, given = reference.answers[test], found.answers[test]
        if len(told) != len(given):
            return True
        asked = self._of(test)
        pairs = [(one, other) for one, other in zip(told, given, strict=True) if not _agree(asked, one, other, True)]
        return any(asked.kinds.get(one[0]) not in (BOTH, SEEN) for one, _ in pairs)

    def _of(self, test: str) -> Questions:
        path = test.partition("::")[0]
        return self._asked.get(self._copies.get(path, path), Questions(b"", {}, {}))

    def test_of(self, test: str) -> str:
        """The id without parameters of the test that a test, or a copy of it, stands for."""
        path, _, name = test.partition("[")[0].partition("::")
        return f"{self._copies.get(path, path)}::{name}"


def _agree(asked: Questions, told: Sequence[Any], given: Sequence[Any], strict: bool) -> bool:
    """Whether an answer is the reference's; if not strict, two sides have to be equal where the reference's are."""
    number, answer = told
    if given[0] != number:
        return False
    if asked.kinds.get(number) == RAISES and answer and isinstance(given[1], list):
        # A test names what it expects, often a class above what is raised.
        return not asked.raises.get(number, frozenset()).union(answer[:1]).isdisjoint(map(str, given[1]))
    sides = not strict and asked.kinds.get(number) == BOTH and isinstance(given[1], list)
    if sides and len(given[1]) == len(answer):
        return _same(answer[0], answer[1]) and _same(given[1][0], given[1][1])
    return _same(answer, given[1])


def _same(one: Any, other: Any) -> bool:
    """Equality as ``==`` has it, apart from what a processor may round."""
    if isinstance(one, list) and isinstance(other, list) and one[:1] != ["float"] != other[:1]:
        return len(one) == len(other) and all(map(_same, one, other))
    left, right = _number(one), _number(other)
    if left is None or right is None:
        return one == other
    return left == right or math.isclose(left, right, rel_tol=_CLOSE, abs_tol=_NEAR_ZERO) or (left != left != right)


def _number(value: Any) -> float | None:
    if isinstance(value, list) and len(value) == 2 and value[0] == "float" and isinstance(value[1], str):
        try:
            return float(value[1])
        except ValueError:
            return None
    return value if isinstance(value, int | float) else None
