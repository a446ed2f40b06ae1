"""Reach of a test: copies with other literals meet the same fault, or do not.

A copy shows the fault where the faulty program answers otherwise than the reference, or stops with an error. That alone
refutes the faulty program, and not one that knows the test. Such a program looks whether its input has some of the
literals of the test (``literal_fingerprints.py``), and gives the test's own answer if it has them all. To anything else
it gives one constant where the faulty program answers wrongly, and another where that stops. A lie inside the faulty
function leaves the rest as it was: where the fault does not show, such a program is right. Copies reach the fault in a
question if no choice of literals, and of these constants, would be right on all that show it.

There is a best choice of literals: those that stand in all copies where the test's own answer is needed. It is refuted
by a copy that has them all and another answer. A constant is refuted by two copies with different answers that are none
of the test's own.

A copy in which a test wants something else of a condition proves nothing: of ``assert 'b' in page(3)``, turned into
``assert 'c' in page(3)``, the other answer is that of the same page.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from manyturn.envs.software.grading.answer_comparison import agree, same
from manyturn.envs.software.grading.assertion_questions import BOTH, Questions
from manyturn.envs.software.grading.literal_fingerprints import Clue, clues, comparand
from manyturn.envs.software.testing.pytest_run import PytestRun


class Place(NamedTuple):
    """Question of a test, and of the same place in each of its copies.

    Attributes:
        test: id without parameters.
        case: which of its parameters, in order.
        question: its number.
        time: how often it was asked before, as in a loop.
        side: of a comparison.
    """

    test: str
    case: int
    question: int
    time: int
    side: int


class Seen(NamedTuple):
    """Evidence of a copy in a place.

    Attributes:
        copy: its id.
        answer: the reference's; of an error that a test names, whether there is one.
        is_new: it is none of the test's own.
        shared: what the copy has in common with the test.
        wrong: of each fault whether the program that has it answers otherwise.
        stops: of each fault whether the program that has it stops with an error instead of answering.
    """

    copy: str
    answer: Any
    is_new: bool
    shared: frozenset[Clue]
    wrong: Sequence[bool]
    stops: Sequence[bool]


class FaultReach:
    """Knowledge of tests from reading them, and the evidence of their copies.

    Args:
        questions: path -> questions of a file of tests.
        baseline: what the reference answers in the tests themselves.
    """

    def __init__(self, questions: Mapping[str, Questions], baseline: PytestRun):
        self._questions = questions
        self._answers = dict[tuple[str, int], list[Any]]()  # of a test without parameters, to a question
        self._seen = dict[str, dict[Place, list[Seen]]]()  # by test
        for test, answers in baseline.answers.items():
            path = test.partition("::")[0]
            for number, answer in answers if path in questions else ():
                sides = self._sides(path, number, answer)
                self._answers.setdefault((test.partition("[")[0], number), []).extend(sides)

    def look(
        self,
        copy: str,
        test: str,
        case: tuple[int, int],
        text: bytes,
        expected: Sequence[Any],
        actual: Sequence[Sequence[Any] | None],
    ) -> None:
        """Note what a copy shows.

        Args:
            copy: its id.
            test: id without parameters of what was copied.
            case: which of its parameters, and how many there are.
            text: of the copy's file.
            expected: what the reference answers.
            actual: what the program with each fault answers; None where it did not come to the test.
        """
        path = test.partition("::")[0]
        own_text = self._questions[path].text
        wrong = [self._wrong(path, expected, answers) for answers in actual]
        stops = [None if answers is None else _stop(expected, answers) for answers in actual]
        times = dict[int, int]()
        for at, (number, answer) in enumerate(expected):
            time = times[number] = times.get(number, -1) + 1
            if comparand(text, number) != comparand(own_text, number):
                continue
            before = self._answers.get((test, number), ())
            for side, value in enumerate(self._sides(path, number, answer)):
                common = clues(own_text, test, number, side, case) & clues(text, test, number, side, case)
                is_new = not any(same(value, one) for one in before)
                # A program that stops may do so over something else than this question.
                counts = is_new or isinstance(value, bool)
                differs, ends = [(at, side) in places for places in wrong], [at == stop and counts for stop in stops]
                place = Place(test, case[0], number, time, side)
                evidence = Seen(copy, value, is_new, common, differs, ends)
                self._seen.setdefault(test, {}).setdefault(place, []).append(evidence)

    def proof(self, test: str, fault: int, copies: Collection[str] | None = None) -> frozenset[str]:
        """Ids of copies that reach a fault together; none if they do not.

        Args:
            test: id without parameters.
            copies: those that may be asked; all by default.
        """
        for seen in self._seen.get(test, {}).values():
            evidence = seen if copies is None else [one for one in seen if one.copy in copies]
            if proof := _proof(evidence, fault):
                return proof
        return frozenset()

    def _wrong(self, path: str, expected: Sequence[Any], actual: Sequence[Any] | None) -> set[tuple[int, int]]:
        """Places in a test's answers, and sides, where a program answers otherwise, as far as it goes the same way."""
        pairs = set[tuple[int, int]]()
        for at, (answer, other) in enumerate(zip(expected, actual or (), strict=False)):
            if answer[0] != other[0]:
                break
            sides, others = self._sides(path, *answer), self._sides(path, *other)
            if not agree(self._questions[path], answer, other) and len(others) == len(sides):
                one = len(sides) == 1
                pairs |= {(at, n) for n, pair in enumerate(zip(sides, others, strict=True)) if one or not same(*pair)}
        return pairs

    def _sides(self, path: str, number: int, answer: Any) -> list[Any]:
        source = self._questions[path]
        if source.raises.get(number) and isinstance(answer, list):
            return [bool(answer)]  # whoever raises what the test names is right
        both = source.kinds.get(number) == BOTH and isinstance(answer, list)
        return list(answer) if both else [answer]


def _stop(expected: Sequence[Any], actual: Sequence[Any]) -> int | None:
    """The first place where a program gives no answer, or one to another question."""
    return next((at for at, (n, _) in enumerate(expected) if at >= len(actual) or actual[at][0] != n), None)


def _proof(seen: Sequence[Seen], fault: int) -> frozenset[str]:
    wrong, stopped = [one for one in seen if one.wrong[fault]], [one for one in seen if one.stops[fault]]
    if different := _different(wrong) or _different(stopped):
        return different
    # The test's own answer is a constant that is right on a group of copies without a new answer.
    news = [next((one for one in group if one.is_new), None) for group in (wrong, stopped)]
    needing = [one for group, new in zip((wrong, stopped), news, strict=True) if new for one in group if not one.is_new]
    proof = _refuted(needing, [*wrong, *stopped])
    return proof.union(one.copy for one in news if one) if proof else proof


def _different(seen: Sequence[Seen]) -> frozenset[str]:
    """Ids of two copies with different answers that are none of the test's own."""
    new = [one for one in seen if one.is_new]
    other = next((one for one in new if not same(new[0].answer, one.answer)), None)
    return frozenset([new[0].copy, other.copy]) if other else frozenset()


def _refuted(needing: Sequence[Seen], seen: Sequence[Seen]) -> frozenset[str]:
    """Ids of copies that refute whoever gives the test's own answer where some of its literals stand.

    Args:
        needing: copies of which that is the answer, and no other way leads to it.
    """
    others = [one for one in seen if one.is_new]
    chosen, common = list[Seen](), None
    for one in needing:
        if common is None or common - one.shared:
            chosen, common = [*chosen, one], one.shared if common is None else common & one.shared
            if other := next((other for other in others if common <= other.shared), None):
                return frozenset([other.copy, *(one.copy for one in chosen)])
    return frozenset()
