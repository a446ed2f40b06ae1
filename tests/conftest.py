"""What all tests share: a cache, signals that are heard, the command line, and a summary by reason and by fault."""

import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with something else is no fault of ours.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side, so that each process has one core
os.environ["HF_HUB_OFFLINE"] = "1"  # read at import: a name that is no model is an error at once, not after three tries

pytest_plugins = [
    *("needs_engine", "needs_browser", "needs_files", "needs_sources", "needs_endpoint", "needs_vllm"),
    "forked",
]

_SHOWN = ("injected", "survived", "lost", "duplicated", "misattributed", "orphans", "bit_exact", "resumes")


def pytest_configure(config: pytest.Config) -> None:
    # A job in the background, or under nohup, inherits them as ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # What an earlier session, or its user, has fetched or converted is not at hand for the tests.
        os.environ["MANYTURN_CACHE"] = folder = tempfile.mkdtemp(prefix="manyturn-cache-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", [])]
    reasons = Counter(found[2].removeprefix("Skipped: ") for found in skipped if isinstance(found, tuple))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")
    # Properties come from the processes that ran the tests, however many there were.
    reports = [report for found in terminalreporter.stats.values() for report in found]
    properties = [dict(report.user_properties) for report in reports if getattr(report, "when", None) == "call"]
    tallies = [found["tally"] for found in properties if "tally" in found]
    if tallies:
        line = ", ".join(f"{sum(tally[name] for tally in tallies)} {name}" for name in _SHOWN)
        terminalreporter.write_line(f"faults in {len(tallies)} classes: {line}")


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(monkeypatch, capfd):
    """Runs ``manyturn WORDS`` as its entry point would, without the seconds that another process takes."""
    from manyturn.cli import app

    def run(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["manyturn", *map(str, words)])
        handler = signal.getsignal(signal.SIGTERM)
        capfd.readouterr()
        try:
            app.main()
        except SystemExit as end:
            code = end.code or 0
        else:
            code = 0
        finally:
            signal.signal(signal.SIGTERM, handler)
        assert isinstance(code, int)
        return Ended(code, *capfd.readouterr())

    return run
