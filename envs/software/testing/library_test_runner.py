"""Runs a library's tests in a sandbox: as released, and with files changed."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple, Self

from manyturn.containers.sandbox import Sandbox, SandboxLost
from manyturn.envs.software.source.libraries import Library
from manyturn.envs.software.source.library_sources import tree

_CACHE = "/tmp/bytecode"
_ENVIRON = {"PYTHONPYCACHEPREFIX": _CACHE, "PYTHONDONTWRITEBYTECODE": ""}
# Two versions of a file may have the same size within one second: only its hash tells whether bytecode is of it.
_COMPILE = "python3 -m compileall -q --invalidation-mode checked-hash ."
_START_SECONDS = 30.0  # for Python and pytest, on a machine under load
_FRESH = 150  # runs after which a container is replaced: what tests leave behind adds up


class Wanted(NamedTuple):
    """Tests to run.

    Attributes:
        paths: of test files.
        runs: how often, each in a process of its own.
        seconds: deadline of each run.
        between: least and most tests that must have passed for another run.
        trace: folders and files whose functions are looked for in what the tests call.
    """

    paths: tuple[str, ...]
    runs: int = 1
    seconds: float = 300.0
    between: tuple[int, int] = (0, 1_000_000)
    trace: tuple[str, ...] = ()


class Trial(NamedTuple):
    """Result of one run of tests.

    Attributes:
        outcomes: id of a test -> ``passed``, ``failed`` or ``skipped``; empty if the run did not come to its end.
        messages: id of a test that failed -> what its error said.
        calls: test file -> functions that its tests called, as ``path:qualified name``; if it was asked for.
        seconds: how long it took.
        timed_out: it was ended at its deadline.
    """

    outcomes: Mapping[str, str]
    messages: Mapping[str, str]
    calls: Mapping[str, Sequence[str]]
    seconds: float
    timed_out: bool = False

    def passed(self) -> frozenset[str]:
        return frozenset(test for test, outcome in self.outcomes.items() if outcome == "passed")

    def skipped(self) -> frozenset[str]:
        return frozenset(test for test, outcome in self.outcomes.items() if outcome == "skipped")


class Trials:
    """Tests of one library in sandboxes, one at a time. A context manager, which starts and stops them."""

    def __init__(self, library: Library, sandbox: Callable[[], Sandbox]) -> None:
        self.library = library
        self._make = sandbox
        self._sandbox: Sandbox | None = None
        self._runs = 0
        self._program = (
            files("manyturn.envs.software.testing").joinpath("standalone_runner.py").read_text(encoding="utf-8")
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def run(self, selection: Wanted, changed: Mapping[str, bytes]) -> list[Trial]:
        """Run test files with files of the library changed.

        A container that is lost is replaced. If its successor is lost too, what is run there ends containers: that is
        one run without outcomes.

        Args:
            changed: path -> content in place of the released one.
        """
        for _ in range(2):
            try:
                return self._run(selection, changed)
            except SandboxLost:
                self._stop()
        return [Trial({}, {}, {}, selection.seconds)]

    def _run(self, selection: Wanted, changed: Mapping[str, bytes]) -> list[Trial]:
        sandbox = self._started()
        for path, content in changed.items():
            sandbox.write(path, content)
        argument = shlex.quote(json.dumps(selection._asdict()))
        script = f"exec python3 - {argument} <<'END-OF-FILE'\n{self._program}END-OF-FILE\n"
        seconds = _START_SECONDS + selection.runs * selection.seconds
        ran = sandbox.run(script, seconds=seconds, environ=_ENVIRON, report=True)
        for path in changed:
            sandbox.write(path, tree(self.library)[path])
        self._runs += 1
        try:
            return [Trial(**run) for run in json.loads(ran.report)]
        except ValueError:
            return [Trial({}, {}, {}, ran.seconds, ran.timed_out)]

    def _started(self) -> Sandbox:
        if self._runs >= _FRESH:
            self._stop()
        if self._sandbox is None:
            self._sandbox, self._runs = self._make(), 0
            self._sandbox.start()
            for path, content in tree(self.library).items():
                self._sandbox.write(path, content)
            self._sandbox.run(_COMPILE, seconds=120, environ=_ENVIRON)
        return self._sandbox

    def _stop(self) -> None:
        if self._sandbox is not None:
            self._sandbox.stop()
            self._sandbox = None
