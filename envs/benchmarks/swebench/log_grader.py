"""Grades a log of a row's tests as SWE-bench's harness 5.0.2 does (``swebench.harness.grading``, MIT).

For rewards in training. Headline numbers come from the harness itself, which reads ``predictions.jsonl``.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from manyturn.envs.benchmarks.swebench.log_parsers import ERROR, FAILED, PASSED, SKIPPED, XFAIL, LogParser

START, END, EXIT = ">>>>> Start Test Output", ">>>>> End Test Output", ">>>>> Test Exit Code"
BAD = (">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out")
_EXIT = re.compile(rf"{EXIT}:\s*(-?\d+)")
_COLOUR = re.compile("\x1b" + r"\[\d+m")


class Resolved(StrEnum):
    """The three verdicts on a patch."""

    FULL = "RESOLVED_FULL"
    PARTIAL = "RESOLVED_PARTIAL"
    NO = "RESOLVED_NO"


class Grade(NamedTuple):
    """The grade of a patch by its log.

    Attributes:
        resolved: FULL if all tests are as they should be; PARTIAL if some of those to be fixed are, and none broke.
        valid: the log is of a run that came to its end, and says what its exit code says.
        mended: of the tests that should pass and did not, the share that passes, in [0, 1].
        unbroken: of the tests that passed, the share that does not fail, in [0, 1].
        failing: the tests that are not as they should be.
    """

    resolved: Resolved
    valid: bool
    mended: float
    unbroken: float
    failing: tuple[str, ...]


INVALID = Grade(Resolved.NO, valid=False, mended=0.0, unbroken=0.0, failing=())


def grade(log: str, parser: LogParser, fail_to_pass: Sequence[str], pass_to_pass: Sequence[str]) -> Grade:
    """Grade a log with the harness's markers.

    A test that should pass now must have passed, or failed as expected; skipped or missing, it counts as failing. A
    test that passed before may also be skipped.
    """
    results = statuses(log, parser)
    if not results:
        return INVALID
    mended = [_verdict(test, results, (PASSED, XFAIL)) for test in fail_to_pass]
    unbroken = [_verdict(test, results, (PASSED, XFAIL, SKIPPED)) for test in pass_to_pass]
    shares = _share(mended), _share(unbroken)
    failing = tuple(
        test for test, good in zip((*fail_to_pass, *pass_to_pass), mended + unbroken, strict=True) if good is False
    )
    return Grade(_resolved(*shares), valid=True, mended=shares[0], unbroken=shares[1], failing=failing)


def statuses(log: str, parser: LogParser) -> Mapping[str, str]:
    """Test -> status; empty if the log is not of a run that can be believed."""
    log = log.replace("\r\n", "\n").replace("\r", "\n")  # as Python reads a file of text
    if any(mark in log for mark in BAD) or START not in log or END not in log:
        return {}
    results = parser(log.split(START)[1].split(END)[0]) or parser(log)
    exits = {int(code) for code in _EXIT.findall(log)}
    failed = any(status in (FAILED, ERROR) for status in results.values())
    # A patch may print lines that look like passes, or an exit code. One run has one code, and a failure tells why.
    if len(exits) > 1 or (exits - {0} and not failed):
        return {}
    return results


def as_expected(log: str, expected: Mapping[str, str]) -> bool:
    """R2E-Gym's rule: the tests of pytest's short summary are the expected ones, each with the expected status.

    Args:
        log: of the whole run.
        expected: test, its file left out and ``::`` written as a dot -> PASSED, FAILED or ERROR.
    """
    _, headline, summary = log.partition("short test summary info")
    results: dict[str, str] = {}
    for line in summary.split("short test summary info")[0].strip().split("\n") if headline else ():
        status = next((word for word in (PASSED, FAILED, ERROR) if word in line), None)
        if status is not None:
            results[".".join(line.split("::")[1:])] = status
    return {_bare(test): status for test, status in results.items()} == {
        _bare(test): status for test, status in expected.items()
    }


def _bare(test: str) -> str:
    return _COLOUR.sub("", test).split(" - ")[0]


def _verdict(test: str, results: Mapping[str, str], good: tuple[str, ...]) -> bool | None:
    """True if a test is as it should be; None if its status is a word that means neither, as in the harness."""
    status = _status(test, results)
    if status in good:
        return True
    return False if status is None or status in (FAILED, ERROR, SKIPPED) else None


def _status(test: str, results: Mapping[str, str]) -> str | None:
    """The status of a test; one whose name the data set has cut off inside its parameters is found by its beginning.

    That holds only if all candidates pass or none does.
    """
    if test in results or test.count("[") <= test.count("]"):
        return results.get(test)
    candidates = [status for name, status in results.items() if name.startswith(test)]
    agree = len({status in (PASSED, XFAIL) for status in candidates}) == 1
    return candidates[0] if agree else None


def _share(verdicts: Sequence[bool | None]) -> float:
    counted = [verdict for verdict in verdicts if verdict is not None]
    return sum(counted) / len(counted) if counted else 1.0


def _resolved(mended: float, unbroken: float) -> Resolved:
    if unbroken < 1:
        return Resolved.NO
    return Resolved.FULL if mended == 1 else Resolved.PARTIAL if mended > 0 else Resolved.NO
