"""A deck of questions for one problem: its tests, copies of them with other literals, and what the reference answers.

Copies are drawn until some reach the fault (``fault_detection.py``), so that neither the fault nor a memory of the
test's answers gets past them. What is drawn and answered depends on the problem alone: it is paid for once, and not by
every grading.

The reference answers twice. Answers in which it does not agree with itself are left out. Of a copy in which it stops
with an error, what it answers before that is asked. The second time it answers as programs will: two computed sides of
a comparison in two runs (``comparison_sides.py``), unless that changes what a test does.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.software.grading.answer_comparison import UNSTEADY, same
from manyturn.envs.software.grading.assertion_questions import BOTH, Questions
from manyturn.envs.software.grading.comparison_sides import Part, divided, parts_of
from manyturn.envs.software.grading.fault_detection import FaultReach
from manyturn.envs.software.grading.literal_mutations import altered
from manyturn.envs.software.testing.pytest_run import FAILED, PASSED, PytestRun

_COPIES = ((8, 9), (30, 4), (math.inf, 2))  # so many tests to make pass at most, so many copies
_SIDES, _COINS = 2, -1  # of a comparison; in place of a copy's number
_MORE, _ROUNDS = 5, 2  # times as many in the second round, of which those are kept that reach a fault
_LATE = [0, ["late"]]  # said of a test that took too long

Run = Callable[[Mapping[str, bytes], Sequence[str], Sequence[str]], PytestRun]
"""Runs a program with files, on tests by their ids, and on all tests of functions."""


class QuestionDeck(NamedTuple):
    """Questions and right answers.

    Attributes:
        parts: what a program is asked in one run after the other; two where sides of comparisons are divided.
        copied: path of a copy -> path of the file of tests.
        answers: id of a test, of copies too -> what the reference answers where both sides are asked together.
        cut: ids of copied tests in which the reference stops. What comes after its answers is not compared.
        lost: ids of tests that it answers once and not again. Nothing that is said of them is wrong, and nothing proves
            them.
        reached: ids without parameters of the tests of which a copy reaches a fault; none where one of several faults
            is reached by no copy.
        timed_out: a run did not come to its end, and the deck is not to be used.
    """

    parts: tuple[Part, ...]
    copied: Mapping[str, str]
    answers: Mapping[str, list[Any]]
    cut: frozenset[str]
    lost: frozenset[str]
    reached: frozenset[str]
    timed_out: bool

    @property
    def firm(self) -> frozenset[str]:
        """The ids of tests that can be believed: the reference gives an answer twice, or they ask nothing."""
        return frozenset(
            test
            for test, answers in self.answers.items()
            if test not in self.lost and (not answers or any(answer is not UNSTEADY for _, answer in answers))
        )

    def original(self, test: str) -> str:
        """The id without parameters of the test that a test, or a copy of it, stands for."""
        path, _, name = test.partition("[")[0].partition("::")
        return f"{self.copied.get(path, path)}::{name}"


def drawn(
    questions_of: Mapping[str, Questions],
    chosen: Sequence[str],
    to_fix: Collection[str],
    draw: Callable[[str, int], np.random.Generator],
    reference: Run,
    faulty: Sequence[Run],
) -> QuestionDeck:
    """Draw copies until some reach each fault, or for a bounded number of rounds.

    Args:
        questions_of: path -> questions of a file of tests.
        chosen: ids of all tests that are asked.
        to_fix: ids without parameters of those that fail before the fix; copies are made of them.
        draw: what decides a copy, from the path of its file of tests and its number.
        reference: runs the program with its fix.
        faulty: run it with all of its fix but for one fault, of those that it has.
    """
    dealer = _Dealer(questions_of, draw, len(faulty))
    tests = [test for test in dict.fromkeys(to_fix) if test.partition("::")[0] in questions_of]
    first = next(copies for most, copies in _COPIES if len(to_fix) <= most)
    earlier: PytestRun | None = None
    for number in range(_ROUNDS):
        if dealer.reached:
            break
        functions = dealer.deal(tests, first * (_MORE if earlier else 1))
        run = reference(dealer.files, () if earlier else chosen, functions)
        if run.timed_out:
            if earlier:
                break  # more copies take too long, and there are some
            return dealer.deck((), {}, frozenset(), late=True)
        earlier = earlier or run
        ids = [test for test in run.outcomes if dealer.is_copy(test) and (_answered(run, test) or _stopped(run, test))]
        spoilt = [one(dealer.files, ids, ()) for one in faulty] if ids else []
        dealer.look(earlier, run, spoilt, keep_all=number == 0)
    assert earlier is not None
    return _settled(dealer, earlier, reference)


def _settled(dealer: "_Dealer", baseline: PytestRun, reference: Run) -> QuestionDeck:
    """The deck, after the reference has answered it as programs will: the same tests in the same order."""
    own = {test: baseline.answers[test] for test, outcome in baseline.outcomes.items() if outcome == PASSED}
    expected = {test: answers for test, answers in own.items() if not dealer.is_copy(test)} | dealer.answers
    if not expected:
        return dealer.deck((), {}, frozenset())
    together = dealer.together(expected)
    parts = dealer.parts(expected, together)
    runs = [reference(part.files, list(part.answers), ()) for part in parts]
    steady = {test: dealer.again(test, answers, runs[0]) for test, answers in parts[0].answers.items()}
    changed = [test for test in steady if len(parts) > 1 and dealer.changes(test, parts, runs)]
    steady |= {test: expected[test] for part in parts[1:] for test in part.answers if test not in changed}
    if changed:
        for test in changed:
            all_answers = [expected[test], *(run.answers.get(test, ()) for run in runs)]
            together[test.partition("::")[0]].update(number for answers in all_answers for number, _ in answers)
        runs.append(reference(dealer.parts(expected, together)[0].files, changed, ()))
        steady |= {test: dealer.again(test, expected[test], runs[-1]) for test in changed}
    lost = frozenset(test for test, answers in steady.items() if answers is None)
    dealer.forget({test for test in expected if test in lost or any(one is UNSTEADY for _, one in steady[test] or ())})
    # What is missing then was not asked, and excuses nobody.
    broken_off = any(run.timed_out or run.status < 0 for run in runs)
    answers = {test: steady[test] or expected[test] for test in expected}
    return dealer.deck(dealer.parts(answers, together), answers, lost, broken_off)


def _answered(run: PytestRun, test: str) -> bool:
    return run.outcomes.get(test) == PASSED


def _stopped(run: PytestRun, test: str) -> bool:
    """True if it failed after some answers, and not because it took too long."""
    answers = run.answers.get(test)
    return run.outcomes.get(test) == FAILED and bool(answers) and _LATE not in answers


def _open(answers: Sequence[Any]) -> list[Any]:
    """Without those that are folded up, of which a program that does not stop there has more."""
    return [answer for answer in answers if answer[0]]


def _steady(once: Sequence[Any], again: Sequence[Any]) -> list[Any] | None:
    """The answers that are the same both times, the others marked; None if other questions were come to."""
    if [number for number, _ in once] != [number for number, _ in again]:
        return None
    pairs = zip(once, again, strict=True)
    return [[number, answer if same(answer, other) else UNSTEADY] for (number, answer), (_, other) in pairs]


def _cases(tests: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Of each test which it is of those of its function, and how many these are."""
    functions: dict[str, list[str]] = {}
    for test in tests:
        functions.setdefault(test.partition("[")[0], []).append(test)
    return {test: (number, len(cases)) for cases in functions.values() for number, test in enumerate(cases)}


class _Dealer:
    """Makes copies, and keeps those that are worth asking."""

    def __init__(self, by_path: Mapping[str, Questions], draw: Callable[[str, int], np.random.Generator], faults: int):
        self.files = {path: questions.text for path, questions in by_path.items()}
        self.answers = dict[str, list[Any]]()  # id of a copied test -> answers
        self.cut = set[str]()
        self._questions, self._draw = by_path, draw
        self._copied, self._numbers = dict[str, str](), dict[str, int]()
        self._reach: FaultReach | None = None
        self._faults = range(faults)
        self._unsteady = set[str]()

    @property
    def reached(self) -> frozenset[str]:
        if self._reach is None:
            return frozenset()
        originals, copies = {self._original(test) for test in self.answers}, self.answers.keys() - self._unsteady
        reached = [{test for test in originals if self._reach.proof(test, fault, copies)} for fault in self._faults]
        return frozenset().union(*reached) if all(reached) else frozenset()

    def is_copy(self, test: str) -> bool:
        return test.partition("::")[0] in self._copied

    def deal(self, tests: Iterable[str], number: int) -> list[str]:
        """Make so many copies of files with tests; returns their functions."""
        by_file: dict[str, list[str]] = {}
        for test in tests:
            path, _, function = test.partition("::")
            by_file.setdefault(path, []).append(function)
        made: list[str] = []
        for path, functions in by_file.items():
            for _ in range(number):
                copy = self._numbers[path] = self._numbers.get(path, -1) + 1
                place = f"{path.removesuffix('.py')}_{copy}.py"
                if place in self._questions:
                    continue
                self._copied[place] = path
                self.files[place] = altered(self._questions[path].text, functions, copy, self._draw(path, copy))
                made += [f"{place}::{function}" for function in functions]
        return made

    def look(self, baseline: PytestRun, run: PytestRun, spoilt: Sequence[PytestRun], keep_all: bool) -> None:
        """Note what reaches a fault, and keep that, or all."""
        reach = self._reach = self._reach or FaultReach(self._questions, baseline)
        cases = _cases(run.outcomes)
        expected = {test: answers for test, answers in run.answers.items() if self.is_copy(test)}
        expected = {test: _open(answers) if _stopped(run, test) else answers for test, answers in expected.items()}
        expected = {test: answers for test, answers in expected.items() if _stopped(run, test) or _answered(run, test)}
        for test, answers in expected.items():
            given = [one.answers.get(test, ()) if test in one.outcomes else None for one in spoilt]
            reach.look(test, self._original(test), cases[test], self.files[test.partition("::")[0]], answers, given)
        originals = {self._original(test) for test in expected}
        proofs = [reach.proof(test, fault) for test in originals for fault in self._faults]
        proved = expected.keys() if keep_all else frozenset().union(*proofs) & expected.keys()
        self.answers |= {test: answers for test, answers in expected.items() if test in proved}
        self.cut.update(test for test in proved if _stopped(run, test))

    def _original(self, test: str) -> str:
        path, _, name = test.partition("::")
        return f"{self._copied[path]}::{name.partition('[')[0]}"

    def forget(self, tests: Collection[str]) -> None:
        """Do without copies that reach the fault by accident."""
        self._unsteady.update(tests)

    def again(self, test: str, answers: Sequence[Any], run: PytestRun) -> list[Any] | None:
        """The answers that a run of the reference gives again, the others marked; None if it goes another way."""
        given = run.answers.get(test, [])
        if test in self.cut:
            return _steady(answers, given[: len(answers)]) if _LATE not in given else None
        return _steady(answers, given) if _answered(run, test) else None

    def changes(self, test: str, parts: Sequence[Part], runs: Sequence[PytestRun]) -> bool:
        """True if a test behaves differently when sides are divided, or answers differently each time."""
        rounds = [(part.answers[test], run) for part, run in zip(parts, runs, strict=True) if test in part.answers]
        return any(self.again(test, answers, run) != answers for answers, run in rounds)

    def together(self, expected: Mapping[str, Sequence[Any]]) -> dict[str, set[int]]:
        """Path -> numbers of questions that no test comes to, or of objects that only their own ``==`` can compare."""
        plain = {path: set[int]() for path in self.files}
        other = {path: set[int]() for path in self.files}
        for test, answers in expected.items():
            place = test.partition("::")[0]
            kinds = self._questions[self._copied.get(place, place)].kinds
            for number, answer in answers:
                if kinds.get(number) == BOTH:
                    (plain if len(answer) == _SIDES else other)[place].add(number)
        return {
            place: other[place] | (self._questions[self._copied.get(place, place)].kinds.keys() - plain[place])
            for place in self.files
        }

    def parts(self, expected: Mapping[str, Sequence[Any]], together: Mapping[str, set[int]]) -> tuple[Part, ...]:
        """Questions of one run after the other."""
        places = {test.partition("::")[0] for test in expected}
        own_files = {path: text for path, text in self.files.items() if path in places or path not in self._copied}
        files = {path: divided(text, together[path], self._draw(path, _COINS)) for path, text in own_files.items()}
        first, second = parts_of(files, expected)
        return (first, second) if second.answers else (first,)

    def deck(
        self, parts: tuple[Part, ...], answers: Mapping[str, list[Any]], lost: frozenset[str], late: bool = False
    ) -> QuestionDeck:
        places = {test.partition("::")[0] for test in answers}
        copied = {place: path for place, path in self._copied.items() if place in places}
        return QuestionDeck(parts, copied, answers, frozenset(self.cut), lost, self.reached, late)
