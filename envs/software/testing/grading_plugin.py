"""Runs chosen tests and reports what became of each on file descriptor 3. The text of this file runs inside a sandbox.

It stands alone, after the text of ``answer_recorder.py``: Python 3.8 and pytest are all they need. What it calls while
tests run is bound before the first of them is imported. Lines of the report are a nonce, a blank and a JSON object; the
last one tells pytest's exit status. The report is evidence and no verdict: see ``grader.py``.
"""

import builtins
import json
import os
import random
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # in the sandbox they stand above
    from manyturn.envs.software.testing.answer_recorder import AnswerRecorder, TooSlow, limited

_MOST_TEXT, _MOST_TEXTS = 3000, 20
_SPARE, _SHARE = 0.5, 0.5  # s of the processor's time, and part of what others took, that functions may take in all
_HASTE = 20  # other literals can make a test endless


class Sender:
    """Writes lines to the report, through a descriptor that the tests neither inherit nor know the number of."""

    def __init__(self, nonce):
        self._descriptor = os.dup(3)
        os.close(3)
        self._nonce = nonce
        self._write, self._encode = os.write, json.JSONEncoder().encode

    def __call__(self, record):
        line = f"{self._nonce} {self._encode(record)}\n".encode("ascii", "backslashreplace")
        while line:
            line = line[self._write(self._descriptor, line) :]


class Reporter:
    """Keeps the chosen tests, and sends what becomes of each and what it answered."""

    def __init__(self, send, order, answers):
        self._send, self._answers, self._seconds = send, answers, order["seconds"]
        self._chosen, self._functions = frozenset(order["chosen"]), frozenset(order["functions"])
        self._until, self._seed = None, random.seed
        self._phases, self._room = {}, 0 if self._seconds else _MOST_TEXTS

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self._wants(item.nodeid)]

    def _wants(self, name):
        return name in self._chosen or self._is_of_function(name)

    def _is_of_function(self, name):
        return name.partition("[")[0] in self._functions

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """Leaves out what there is no more time for. Questions about inputs that are drawn are always the same."""
        if self._seconds:
            self._seed(0)
        if not self._is_of_function(item.nodeid):
            return None
        if self._until is None:
            self._until = _SPARE + (1 + _SHARE) * time.process_time()
        return True if time.process_time() > self._until else None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        self._answers.begin()
        if self._seconds:
            limited(self._seconds / (_HASTE if self._is_of_function(item.nodeid) else 1))
        outcome = yield
        if self._seconds:
            limited(0)
        if outcome.excinfo and issubclass(outcome.excinfo[0], TooSlow):
            self._answers.late()

    def pytest_runtest_logreport(self, report):
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when == "teardown":
            record = {"id": report.nodeid, "outcome": _outcome(phases), "text": self._why(phases)}
            self._send({**record, "answers": self._answers.report()})
            self._answers.begin()

    def pytest_collectreport(self, report):
        if report.failed:
            self._send({"file": report.nodeid, "outcome": "failed", "text": self._why([report])})

    def _why(self, phases):
        """Failure of the first failing phase, for as many tests as there is room for; questions are not revealed."""
        failed = next((report for report in phases if report.failed), None)
        if failed is None or not self._room:
            return ""
        self._room -= 1
        return failed.longreprtext[-_MOST_TEXT:]


def _outcome(phases):
    """Result of a test: a failure in any phase counts, and so does a missing call."""
    if any(report.failed for report in phases):
        return "failed"
    skipped = [report for report in phases if report.skipped]
    if skipped:
        return "xfailed" if hasattr(skipped[0], "wasxfail") else "skipped"
    return "passed" if any(report.when == "call" for report in phases) else "failed"


def main(exit_now=os._exit, run=pytest.main):
    """Read the order from standard input, obey it, and end without giving way to what tests have left behind."""
    order = json.loads(sys.stdin.readline())
    send = Sender(order["nonce"])
    answers = AnswerRecorder()
    builtins.__dict__["__ask__"] = answers
    sys.path.insert(0, os.getcwd())
    status = int(run(order["arguments"], plugins=[Reporter(send, order, answers)]))
    send({"exit": status})
    exit_now(status)


if __name__ == "__main__":
    main()
