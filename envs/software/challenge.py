"""A challenge: what a program has to compute before its patch is believed, and what the reference computes.

A problem's tests are turned into questions (``questions.py``): as they are, and for those that a patch has to make pass
in copies with other literals (``alterations.py``). The reference, which is the problem with its known fix, answers them
alone in a sandbox. A program is right if its answers are the same. Expected values are in neither file nor process, so
only who computes them has them; and in a copy they are not those of the test that an agent may have read.

Copies that the reference cannot answer, and answers in which it does not agree with itself, are left out.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from manyturn.containers.sandbox import Sandbox
from manyturn.envs.contract.keys import digest, generator
from manyturn.envs.software.alterations import altered
from manyturn.envs.software.checked_run import PASSED, CheckedRun, run_tests
from manyturn.envs.software.marks import expected_to_fail
from manyturn.envs.software.questions import BOTH, RAISES, SEEN, Questions, questions
from manyturn.envs.software.recent import Recent

_COPIES = ((8, 9), (30, 4), (math.inf, 2))  # so many tests to make pass at most, so many copies
_REFERENCE_SECONDS, _SECONDS = 5.0, 8.0  # of the processor's time, of one test
_MORE = 2  # times the seconds of a run of the tests
_CLOSE, _NEAR_ZERO = 1e-6, 1e-9

_answered = Recent[CheckedRun](64)

Program = TypeVar("Program")


class Tests(NamedTuple):
    """What grades a program: path -> content of files, and pytest's ids as in ``Problem``."""

    files: Mapping[str, bytes]
    fail_to_pass: Sequence[str]
    pass_to_pass: Sequence[str]


class Met(NamedTuple):
    """How a program met a challenge.

    Attributes:
        tampered: why what it said cannot be true; empty if it can.
        wrong: ids of tests, of copies too, that it does not answer as the reference does.
        failed: ids without parameters of the tests that those stand for.
        answered: ids of tests that the reference answers.
        timed_out: it, or the reference, came to a deadline and not to its end.
    """

    tampered: str
    wrong: frozenset[str]
    failed: frozenset[str]
    answered: frozenset[str]
    timed_out: bool

    def holds(self, test: str) -> bool:
        """Whether a test, and all copies of it, are answered, and rightly."""
        return test in self.answered and test.partition("[")[0] not in self.failed


class Challenge(Generic[Program]):
    """The questions of one problem, for programs in whatever form.

    Args:
        name: of the problem.
        tests: what is turned into questions.
        reference: the right program.
        lay: puts a program into an emptied sandbox, with files that take precedence over its own.
        seed: what is altered follows from it, and the name.
    """

    def __init__(
        self,
        name: str,
        tests: Tests,
        reference: Program,
        lay: Callable[[Sandbox, Program, Mapping[str, bytes]], None],
        seed: int,
    ):
        self._tests, self._reference, self._lay = tests, reference, lay
        known_to_fail = expected_to_fail(tests.files, tests.pass_to_pass)
        self._chosen = tuple(t for t in (*tests.fail_to_pass, *tests.pass_to_pass) if t not in known_to_fail)
        self._kept = frozenset(tests.pass_to_pass)
        paths = dict.fromkeys(test.partition("::")[0] for test in self._chosen)
        self._asked = {path: questions(tests.files[path]) for path in paths if path in tests.files}
        self._copies = dict[str, str]()  # path of a copy -> path of the file of tests
        self._files = {path: asked.text for path, asked in self._asked.items()}
        self._functions: tuple[str, ...] = ()
        self._alter(name, seed)
        self._key = digest(name, self._chosen, self._files, reference)

    def met(self, sandbox: Sandbox, program: Program, seconds: float, said: Collection[str]) -> Met:
        """Challenge a program; whatever is in the sandbox is lost.

        Args:
            seconds: of the processor's time for a run of the tests as they are.
            said: ids of tests that are said to pass.
        """
        reference = self._reference_answers(sandbox, seconds)
        found = self._answers(sandbox, program, seconds, reference)
        wrong = self._wrong(reference, found)
        if wrong:  # where the reference does not agree with itself, nobody has to agree with it
            again = self._answers(sandbox, self._reference, seconds, reference)
            wrong = [test for test in wrong if test not in self._wrong(reference, again)]
        tampered, late = found.forged, reference.timed_out or (found.timed_out and bool(wrong))
        lies = [] if late else [t for t in wrong if t in said and self._contradicts(t, reference, found)]
        if lies and not tampered:
            tampered = f"{lies[0]} is said to pass, and does not when it is asked for what it computes"
        answered = frozenset(test for test, outcome in reference.found.items() if outcome == PASSED)
        return Met(tampered, frozenset(wrong), frozenset(map(self._test_of, wrong)), answered, late)

    def _alter(self, name: str, seed: int) -> None:
        by_file: dict[str, dict[str, None]] = {}
        for test in self._tests.fail_to_pass:
            path, _, function = test.partition("[")[0].partition("::")
            by_file.setdefault(path, {})[function] = None
        number = next(copies for most, copies in _COPIES if len(self._tests.fail_to_pass) <= most)
        for path, functions in by_file.items():
            if path not in self._asked:
                continue
            for copy in range(number):
                rng = generator("software challenge", seed, name, path, copy)
                place = f"{path.removesuffix('.py')}_{copy}.py"
                self._copies[place] = path
                self._files[place] = altered(self._asked[path].text, functions, copy, rng)
                self._functions += tuple(f"{place}::{function}" for function in functions)

    def _reference_answers(self, sandbox: Sandbox, seconds: float) -> CheckedRun:
        def run() -> CheckedRun:
            self._lay(sandbox, self._reference, self._files)
            return run_tests(sandbox, self._chosen, _MORE * seconds, self._functions, _REFERENCE_SECONDS)

        return _answered.made(self._key, run, keep=lambda run: not run.timed_out)

    def _answers(self, sandbox: Sandbox, program: Program, seconds: float, reference: CheckedRun) -> CheckedRun:
        """What a program answers to what the reference answers."""
        self._lay(sandbox, program, self._files)
        asked = [test for test, outcome in reference.found.items() if outcome == PASSED]
        return run_tests(sandbox, asked, _MORE * seconds, each=_SECONDS)

    def _wrong(self, reference: CheckedRun, found: CheckedRun) -> list[str]:
        return [test for test, told in reference.answers.items() if self._differs(test, reference, found, told)]

    def _differs(self, test: str, reference: CheckedRun, found: CheckedRun, told: list[Any]) -> bool:
        if reference.found[test] != PASSED:
            return False
        given = found.answers.get(test, [])
        if found.found.get(test) != PASSED or len(given) != len(told):
            return True
        asked, strict = self._of(test), test not in self._kept
        return not all(_agree(asked, one, other, strict) for one, other in zip(told, given, strict=True))

    def _contradicts(self, test: str, reference: CheckedRun, found: CheckedRun) -> bool:
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

    def _test_of(self, test: str) -> str:
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
