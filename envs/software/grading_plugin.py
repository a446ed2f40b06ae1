"""Runs chosen tests and reports what became of each on file descriptor 3. The text of this file runs inside a sandbox.

It stands alone: Python 3.8 and pytest are all it needs. What it calls while tests run is bound before the first of
them is imported. Lines of the report are a nonce, a blank and a JSON object; the last one tells pytest's exit status.
"""

import json
import os
import sys

import pytest

_MOST_TEXT, _MOST_TEXTS = 3000, 20


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
    """Keeps the chosen tests, sends what becomes of each, and in the twin run makes every test fail at its end.

    The failure is tied to the test's own body: where that is not run, or what it raises is lost, the test passes.
    """

    def __init__(self, send, chosen, twin):
        self._send, self._chosen, self._twin = send, frozenset(chosen), twin
        self._phases, self._room = {}, _MOST_TEXTS

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid in self._chosen]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item):
        if self._twin and isinstance(item, pytest.Function):
            item.obj = _failing(item.obj)

    def pytest_runtest_logreport(self, report):
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when == "teardown":
            self._send(
                {
                    "id": report.nodeid,
                    "outcome": _outcome(phases),
                    "text": self._why(phases),
                }
            )

    def pytest_collectreport(self, report):
        if report.failed:
            self._send({"file": report.nodeid, "outcome": "failed", "text": self._why([report])})

    def _why(self, phases):
        """How the first phase failed that did, for as many tests as there is room for."""
        failed = next((report for report in phases if report.failed), None)
        if failed is None or self._twin or not self._room:
            return ""
        self._room -= 1
        return failed.longreprtext[-_MOST_TEXT:]


def _failing(body):
    def twin(*given, **named):
        body(*given, **named)
        raise AssertionError("the twin of a test fails")

    return twin


def _outcome(phases):
    """What became of a test: a failure in any phase counts, and so does a call that is missing."""
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
    sys.path.insert(0, os.getcwd())
    status = int(run(order["arguments"], plugins=[Reporter(send, order["chosen"], order["twin"])]))
    send({"exit": status})
    exit_now(status)


if __name__ == "__main__":
    main()
