"""Adds up what the classes of faults did, and prints it below the results."""

import pytest

_TALLIES: list[dict[str, int]] = []
_SHOWN = ("injected", "survived", "lost", "duplicated", "misattributed", "orphans", "bit_exact", "resumes")


@pytest.fixture
def record_tally():
    return _TALLIES.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _TALLIES:
        line = ", ".join(f"{sum(tally[name] for tally in _TALLIES)} {name}" for name in _SHOWN)
        terminalreporter.write_line(f"faults in {len(_TALLIES)} classes: {line}")
