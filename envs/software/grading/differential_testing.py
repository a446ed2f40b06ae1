"""A challenge: what a program has to compute before its patch is believed, and what the reference computes.

A problem's tests are turned into questions (``assertion_questions.py``): as they are, and for those that a patch has to
make pass in copies with other literals (``question_deck.py``). The reference, the problem with its known fix, answers
them in a sandbox of its own. A program is right if its answers are the same. Expected values are in neither file nor
process, so only who computes them has them; and in a copy they are not those of the test that an agent may have read.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.sandbox import Sandbox
from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.software.grading.answer_comparison import agree
from manyturn.envs.software.grading.assertion_questions import BOTH, SEEN, Questions, questions
from manyturn.envs.software.grading.comparison_sides import Part
from manyturn.envs.software.grading.question_deck import QuestionDeck, Run, drawn
from manyturn.envs.software.source.lru_cache import RecencyCache
from manyturn.envs.software.testing.expected_failures import expected_to_fail
from manyturn.envs.software.testing.pytest_run import PASSED, PytestRun, run_tests
from manyturn.envs.software.testing.time_budget import TimeBudget, timed

_DECKS = 4  # of a problem: few enough that they are soon all drawn, and not all gradings are alike
_REFERENCE_SECONDS, _FAULTY_SECONDS, _SECONDS = 5.0, 0.25, 8.0  # of the processor's time, of one test
_MORE = 2  # times the seconds of a run of the tests

_decks = RecencyCache[QuestionDeck](256)

Program = TypeVar("Program")


class Tests(NamedTuple):
    """Grading files of a program: path -> content, and pytest's ids as in ``Problem``."""

    files: Mapping[str, bytes]
    fail_to_pass: Sequence[str]
    pass_to_pass: Sequence[str]


class Met(NamedTuple):
    """Result of a challenge.

    Attributes:
        tampered: why what it said cannot be true; empty if it can.
        wrong: ids of tests, of copies too, that it does not answer as the reference does.
        failed: ids without parameters of the tests that those stand for.
        answered: ids of tests that the reference answers. Where it answers all tests to make pass otherwise each time,
            those that it does not answer so.
        reached: share of the tests to make pass of which a copy with other literals reaches the fault. Where it is 0,
            who knows the visible tests by heart can answer everything.
        timed_out: it, or the reference, came to a deadline and not to its end.
    """

    tampered: str
    wrong: frozenset[str]
    failed: frozenset[str]
    answered: frozenset[str]
    reached: float
    timed_out: bool

    def holds(self, test: str) -> bool:
        """True if a test and all its copies are answered correctly."""
        return test in self.answered and test.partition("[")[0] not in self.failed


class Asked(NamedTuple):
    """Questions to a program, and its answers in each run."""

    deck: QuestionDeck
    runs: tuple[PytestRun, ...]


def deck_of(seed: int, rehearsal: bool = False) -> int:
    """The number of the deck that a seed chooses, which is all that a challenge takes from it.

    A rehearsal has a deck of its own, so that who is told of its questions knows nothing of those that count.
    """
    return _DECKS if rehearsal else seed % _DECKS


class Challenge(Generic[Program]):
    """The questions of one problem, for programs in whatever form.

    Args:
        name: of the problem.
        tests: what is turned into questions.
        reference: the right program.
        faulty: the program before its fix; of several faults, a program for each that has this one alone.
        lay: puts a program into an emptied sandbox, with files that take precedence over its own.
        number: of the deck of questions; see ``deck_of``.
    """

    def __init__(
        self,
        name: str,
        tests: Tests,
        reference: Program,
        faulty: Sequence[Program],
        lay: Callable[[Sandbox, Program, Mapping[str, bytes]], None],
        number: int,
    ):
        self._tests, self._reference, self._faulty, self._lay = tests, reference, faulty, lay
        known_to_fail = expected_to_fail(tests.files, tests.pass_to_pass)
        self._chosen = tuple(t for t in (*tests.fail_to_pass, *tests.pass_to_pass) if t not in known_to_fail)
        paths = dict.fromkeys(test.partition("::")[0] for test in self._chosen)
        self._questions = {path: questions(tests.files[path]) for path in paths if path in tests.files}
        self._name, self._number = name, number

    def ask(self, sandbox: Sandbox, program: Program, seconds: float, budget: TimeBudget | None = None) -> Asked:
        """Ask a program; whatever is in the sandbox is lost.

        Args:
            seconds: of the processor's time for a run of the tests as they are.
            budget: by the clock, for the program; the reference needs none.
        """
        deck = self._deck(sandbox, seconds)
        if deck.timed_out or not self._proof(deck):
            return Asked(deck, ())
        runs = list[PytestRun]()
        for part in deck.parts:
            self._lay(sandbox, program, part.files)
            tests = list(part.answers)
            runs.append(run_tests(timed(sandbox, budget), tests, _MORE * seconds, each=_SECONDS))
        return Asked(deck, tuple(runs))

    def met(self, answers: Asked, passing: Collection[str]) -> Met:
        """Result of a challenge.

        Args:
            passing: ids of tests that are said to pass.
        """
        deck = answers.deck
        answered, reached = self._proof(deck), self._share(deck)
        if deck.timed_out or not answered:
            return Met("", frozenset(), frozenset(), answered, reached, deck.timed_out)
        runs = list(zip(deck.parts, answers.runs, strict=True))
        steady = [test for test in deck.answers if test not in deck.lost]
        wrong = [test for test in steady if any(self._differs(test, deck, *one) for one in runs)]
        late = any(run.timed_out for run in answers.runs) and bool(wrong)
        doubted = [] if late else [test for test in wrong if test in passing]
        lies = [test for test in doubted if any(self._contradicts(test, deck, *one) for one in runs)]
        tampered = next((run.forged for run in answers.runs if run.forged), "")
        if lies and not tampered:
            tampered = f"{lies[0]} is said to pass, and does not when it is asked for what it computes"
        return Met(tampered, frozenset(wrong), frozenset(map(deck.original, wrong)), answered, reached, late)

    def _proof(self, deck: QuestionDeck) -> frozenset[str]:
        """The tests that are believed if they are answered rightly.

        What has another answer each time, such as the time of day, is believed next to a test that has not.
        """
        return frozenset(deck.answers) if deck.firm.intersection(self._tests.fail_to_pass) else deck.firm

    def reached(self, sandbox: Sandbox, seconds: float) -> float | None:
        """The share that ``Met`` has; None where a run does not come to its end. Whatever is in the sandbox is lost."""
        deck = self._deck(sandbox, seconds)
        return None if deck.timed_out else self._share(deck)

    def _share(self, deck: QuestionDeck) -> float:
        return len(deck.reached) / max(1, len(_functions(self._tests.fail_to_pass)))

    def _deck(self, sandbox: Sandbox, seconds: float) -> QuestionDeck:
        """The deck of this challenge; the first one where that reaches nothing, so that one measurement is of all."""
        deck = self._numbered(self._number, sandbox, seconds)
        rehearsal = self._number == deck_of(0, rehearsal=True)  # of which an agent is told more
        return deck if deck.reached or deck.timed_out or rehearsal else self._numbered(0, sandbox, seconds)

    def _numbered(self, number: int, sandbox: Sandbox, seconds: float) -> QuestionDeck:
        def reference(files: Mapping[str, bytes], chosen: Sequence[str], functions: Sequence[str]) -> PytestRun:
            self._lay(sandbox, self._reference, files)
            each = _REFERENCE_SECONDS if functions else _SECONDS
            return run_tests(sandbox, chosen, _MORE * seconds, functions, each)

        def faulty(program: Program) -> Run:
            def run(files: Mapping[str, bytes], chosen: Sequence[str], functions: Sequence[str]) -> PytestRun:
                self._lay(sandbox, program, files)
                return run_tests(sandbox, chosen, _MORE * seconds, functions, _FAULTY_SECONDS)

            return run

        def draw(path: str, copy: int) -> np.random.Generator:
            return generator("software challenge", number, self._name, path, copy)

        def make() -> QuestionDeck:
            to_fix = _functions(self._tests.fail_to_pass)
            return drawn(self._questions, self._chosen, to_fix, draw, reference, [faulty(one) for one in self._faulty])

        texts = {path: questions.text for path, questions in self._questions.items()}
        where = sandbox.engine.model_dump_json() if isinstance(sandbox, DockerSandbox) else ""
        key = digest(where, self._name, number, self._chosen, texts, self._reference, self._faulty)
        return _decks.made(key, make, keep=lambda deck: not deck.timed_out)

    def _differs(self, test: str, deck: QuestionDeck, part: Part, run: PytestRun) -> bool:
        if test not in part.answers:
            return False
        expected, given = part.answers[test], run.answers.get(test, [])
        if test in deck.cut:
            given = given[: len(expected)]
        elif run.outcomes.get(test) != PASSED:
            return True
        if len(given) != len(expected):
            return True
        questions = self._of(test, deck)
        return not all(agree(questions, one, other) for one, other in zip(expected, given, strict=True))

    def _contradicts(self, test: str, deck: QuestionDeck, part: Part, run: PytestRun) -> bool:
        """True if a test reported as passing cannot have passed with these answers."""
        if test not in part.answers:
            return False
        if run.outcomes.get(test) != PASSED:
            return True
        expected, given = part.answers[test], run.answers[test]
        if len(expected) != len(given):
            return True
        questions = self._of(test, deck)
        pairs = [(one, other) for one, other in zip(expected, given, strict=True) if not agree(questions, one, other)]
        return any(questions.kinds.get(one[0]) not in (BOTH, SEEN) for one, _ in pairs)

    def _of(self, test: str, deck: QuestionDeck) -> Questions:
        path = test.partition("::")[0]
        return self._questions.get(deck.copied.get(path, path), Questions(b"", {}, {}))


def _functions(tests: Sequence[str]) -> list[str]:
    """Tests without parameters."""
    return list(dict.fromkeys(test.partition("[")[0] for test in tests))
