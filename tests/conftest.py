"""What all tests share: signals are heard, and what the faults did stands below the results."""

import os
import signal

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # read at import: a name that is no model is told at once, not after three tries

pytest_plugins = ["needs_engine"]

_SHOWN = ("injected", "survived", "lost", "duplicated", "misattributed", "orphans", "bit_exact", "resumes")


def pytest_configure() -> None:
    # A job in the background, or under nohup, inherits them as ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Properties come from the processes that ran the tests, however many there were.
    reports = [report for found in terminalreporter.stats.values() for report in found]
    properties = [dict(report.user_properties) for report in reports if getattr(report, "when", None) == "call"]
    tallies = [found["tally"] for found in properties if "tally" in found]
    if tallies:
        line = ", ".join(f"{sum(tally[name] for tally in tallies)} {name}" for name in _SHOWN)
        terminalreporter.write_line(f"faults in {len(tallies)} classes: {line}")
