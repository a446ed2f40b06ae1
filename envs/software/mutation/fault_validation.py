"""Finds out which faults make good tasks: some tests must fail because of one, others must still pass, always the same.

A fault that lets a run of tests hang, breaks more than a quarter of them or none, or comes out differently when it is
run again, is not a task.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Self

from manyturn.containers.sandbox import Sandbox
from manyturn.envs.software.mutation.candidates import Fault
from manyturn.envs.software.source.edits import applied
from manyturn.envs.software.source.libraries import Library
from manyturn.envs.software.source.library_sources import tree
from manyturn.envs.software.testing.library_test_runner import Trial, Trials, Wanted

RUNS = 3
"""How often a run of tests must come out the same."""
MOST_BROKEN = 0.25
"""Part of the tests that a fault may break."""
VALID = "valid"
_PATIENCE = (5.0, 5.0)  # a run of tests may take so many seconds, and so many times as long as without the fault
_LINES, _LENGTH = 4, 320  # of a symptom
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_TELLS = re.compile(r"==|\bwhere\b|Error: .|DID NOT RAISE")


class Baseline(NamedTuple):
    """A library as it was released.

    Attributes:
        steady: ids of tests that passed in every run.
        calls: test file -> functions that its tests call, as ``path:qualified name``.
    """

    steady: frozenset[str]
    calls: Mapping[str, Sequence[str]]


class Verdict(NamedTuple):
    """Result of a fault's trial.

    Attributes:
        reason: ``valid``, or why it makes no task.
        fail_to_pass, pass_to_pass: ids of tests; empty unless it is valid.
        symptoms: for each edit the id of a test that fails because of it, and what its error said.
        seconds: of all runs.
    """

    reason: str
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    symptoms: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0


class FaultValidator:
    """Judges faults of one library. A context manager.

    Args:
        sandbox: makes a container.
        baseline: what is known of the library; measured when it is needed if it is not given.
    """

    def __init__(self, library: Library, sandbox: Callable[[], Sandbox], baseline: Baseline | None = None) -> None:
        self.library = library
        self._trials, self._baseline = Trials(library, sandbox), baseline
        self._steady: dict[tuple[str, ...], tuple[frozenset[str], float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._trials.__exit__(*error)

    @cached_property
    def baseline(self) -> Baseline:
        """The library as it was released. Raises RuntimeError if none of its tests pass."""
        if self._baseline is not None:
            return self._baseline
        tests = test_files(self.library)
        traced = self._trials.run(Wanted(tests, trace=self.library.code), {})
        steady = frozenset.intersection(*(run.passed() for run in self._trials.run(Wanted(tests, RUNS), {})))
        if not steady:
            raise RuntimeError(f"no test of {self.library.pin} passes in the image: it needs Python >= 3.11 and pytest")
        return Baseline(steady, traced[0].calls)

    def judge(self, fault: Fault, parts: Sequence[frozenset[str]] = ()) -> Verdict:
        """Run the tests that reach a fault, with it and without.

        Args:
            parts: for a combined fault, the tests that each of its edits breaks alone.
        """
        steady, normal = self._without(fault.tests)
        between = math.ceil((1 - MOST_BROKEN) * len(steady)), len(steady) - 1
        request = Wanted(fault.tests, RUNS, _PATIENCE[0] + _PATIENCE[1] * normal, between)
        runs = self._trials.run(request, broken(self.library, fault))
        reason = _fate(runs, steady)
        if reason != VALID:
            return Verdict(reason, seconds=_seconds(runs))
        fails, passes = _sorted_out(runs[0], steady)
        parts = parts or (fails,)
        if not all(part & fails for part in parts):
            return Verdict("one fault hides another", seconds=_seconds(runs))
        symptoms = tuple(clearest_failure(runs[0].messages, part & fails) for part in parts)
        return Verdict(VALID, tuple(sorted(fails)), tuple(sorted(passes)), symptoms, _seconds(runs))

    def bears(self, fault: Fault, broken: frozenset[str]) -> bool:
        """True if the broken tests are few enough among those that reach a fault."""
        reach = sum(test.partition("::")[0] in fault.tests for test in self.baseline.steady)
        return len(broken) <= MOST_BROKEN * reach

    def _without(self, tests: tuple[str, ...]) -> tuple[frozenset[str], float]:
        """Tests of these files that pass when no others run, and seconds."""
        if tests not in self._steady:
            run = self._trials.run(Wanted(tests), {})[0]
            if not run.outcomes:
                raise RuntimeError(f"the tests {', '.join(tests)} of {self.library.pin} do not come to their end")
            self._steady[tests] = run.passed() & self.baseline.steady, run.seconds
        return self._steady[tests]


def test_files(library: Library) -> tuple[str, ...]:
    """Files that pytest can be given."""
    graded = [path for path in tree(library) if library.grades(path) and path.endswith(".py")]
    names = {path: path.rpartition("/")[2] for path in graded}
    return tuple(path for path in graded if names[path].startswith("test"))


def broken(library: Library, fault: Fault) -> dict[str, bytes]:
    """The files that a fault changes: path -> content."""
    source = tree(library)
    paths = dict.fromkeys(path for path, _ in fault.edits)
    return {path: applied(source[path], [edit for at, edit in fault.edits if at == path]) for path in paths}


def _sorted_out(run: Trial, steady: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Tests that fail, or are gone, and tests that pass, of those that pass without the fault."""
    passes = run.passed() & steady
    return steady - passes - run.skipped(), passes


def _fate(runs: Sequence[Trial], steady: frozenset[str]) -> str:
    fails, passes = _sorted_out(runs[0], steady)
    if any(run.timed_out for run in runs):
        return "timed out"
    if not runs[0].outcomes:
        return "nothing ran"
    if not fails:
        return "survived"
    if not passes or len(fails) > MOST_BROKEN * len(steady):
        return "broke too much"
    if len(runs) < RUNS or any(_sorted_out(run, steady) != (fails, passes) for run in runs):
        return "unsteady"
    return VALID


def _seconds(runs: Sequence[Trial]) -> float:
    return round(sum(run.seconds for run in runs), 2)


def clearest_failure(messages: Mapping[str, str], tests: Collection[str]) -> tuple[str, str]:
    """Of tests that fail, the one whose error tells most in the fewest words, and what it said."""
    texts = {test: plain_message(messages.get(test, "")) for test in tests}
    best = min(sorted(texts), key=lambda test: (not texts[test], not _TELLS.search(texts[test]), len(texts[test])))
    return best, texts[best]


def plain_message(message: str) -> str:
    """A message without addresses in memory, blank lines and what is beyond the first lines."""
    lines = [line.rstrip() for line in _ADDRESS.sub("0x...", message).splitlines() if line.strip()]
    text = "\n".join(lines[:_LINES])
    return text if len(text) <= _LENGTH else text[:_LENGTH].rstrip() + " ..."
