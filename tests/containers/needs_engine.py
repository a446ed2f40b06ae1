"""The fixture ``engine`` for tests that start containers, and a line below the results if they could not."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from manyturn.containers.images import NAME, build, resolve
from manyturn.containers.sandbox import EngineUnavailable

_SKIPPED = "no container engine: "


@pytest.fixture(scope="session")
def engine() -> str:
    """The name of an image on an engine that answers.

    Skips visibly where there is none. With MANYTURN_REQUIRE_ENGINE=1 that fails, and a missing image is made.
    """
    try:
        if os.environ.get("MANYTURN_REQUIRE_ENGINE") == "1":
            _build()
        resolve(NAME)
    except (EngineUnavailable, ModuleNotFoundError) as reason:
        if os.environ.get("MANYTURN_REQUIRE_ENGINE") == "1":
            pytest.fail(f"MANYTURN_REQUIRE_ENGINE=1, but {reason}")
        told = str(reason).replace("no container engine ", "none ", 1)
        pytest.skip(f"{_SKIPPED}{told}; start one with .ci/engine start")
    return NAME


def _build() -> None:
    """Once, however many processes run the tests."""
    lock = Path(tempfile.gettempdir()) / f"manyturn-images-{os.getuid()}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        build()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if report.longrepr]
    without = [reason for reason in reasons if _SKIPPED in reason]
    if without:
        reason = without[0].partition(_SKIPPED)[2]
        terminalreporter.write_line(f"tests of containers: {len(without)} skipped, {_SKIPPED}{reason}")
