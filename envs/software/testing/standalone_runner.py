"""Runs tests inside a container and writes what came of them to file descriptor 3. The host only reads this file.

Its one argument is JSON: ``paths`` of test files; ``runs``, how often at most: each in a process of its own, forked
before the library is imported; ``seconds`` for each; ``between``, least and most tests that must have passed for
another run; and ``trace``, folders and files of which the functions are wanted that each test file's tests call.
"""

import json
import os
import select
import signal
import sys
import time

import pytest

MESSAGES, LENGTH = 40, 600  # how many messages of failures are kept, and characters of each


class Recorder:
    """A plugin of pytest.

    Attributes:
        outcomes: id of a test -> ``passed``, ``failed`` or ``skipped``.
        messages: id of a test that failed -> what its error said.
        calls: test file -> functions of the library that its tests called, as ``path:qualified name``.
    """

    def __init__(self, code):
        self.outcomes, self.messages, self.calls = {}, {}, {}
        self._top, self._code, self._seen = os.getcwd() + "/", tuple(code), set()

    def pytest_runtest_logreport(self, report):
        before = self.outcomes.get(report.nodeid)
        if report.outcome != "passed" or before is None:
            self.outcomes[report.nodeid] = "failed" if "failed" in (before, report.outcome) else report.outcome
        if report.outcome == "failed" and len(self.messages) < MESSAGES:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.messages[report.nodeid] = (crash.message if crash else str(report.longrepr))[:LENGTH]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self._seen = set()
        if self._code:
            sys.settrace(self._called)
        yield
        if self._code:
            sys.settrace(None)
            self.calls.setdefault(item.nodeid.partition("::")[0], set()).update(self._seen)

    def _called(self, frame, event, argument):
        code = frame.f_code
        if code.co_filename.startswith(self._top):
            path = code.co_filename[len(self._top) :]
            if path.startswith(self._code):
                self._seen.add(path + ":" + code.co_qualname)


def told_by_child(request):
    """Result of one run of the tests; it has no outcomes if the run did not end."""
    began, (reading, writing) = time.monotonic(), os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        recorder = Recorder(request["trace"])
        pytest.main(["-q", *request["paths"]], plugins=[recorder])
        calls = {path: sorted(calls_there) for path, calls_there in recorder.calls.items()}
        record = {"outcomes": recorder.outcomes, "messages": recorder.messages, "calls": calls}
        with os.fdopen(writing, "w", encoding="utf-8") as stream:
            json.dump(record, stream)
        os._exit(0)
    os.close(writing)
    pieces, timed_out = [], False
    while True:
        left = began + request["seconds"] - time.monotonic()
        if not select.select([reading], [], [], max(0.0, left))[0]:
            timed_out = True
            break
        pieces.append(os.read(reading, 1 << 16))
        if not pieces[-1]:
            break
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    try:
        record = json.loads(b"".join(pieces))
    except ValueError:
        record = {"outcomes": {}, "messages": {}, "calls": {}}
    return {**record, "seconds": time.monotonic() - began, "timed_out": timed_out}


def main():
    request, runs = json.loads(sys.argv[1]), []
    while len(runs) < request["runs"]:
        runs.append(told_by_child(request))
        least, most = request["between"]
        if not least <= list(runs[-1]["outcomes"].values()).count("passed") <= most:
            break
    with os.fdopen(3, "w", encoding="utf-8") as stream:
        json.dump(runs, stream)


if __name__ == "__main__":
    main()
