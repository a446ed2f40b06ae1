"""The calendar with three tools, from new-env to a report, as a newcomer goes; nothing is given but names."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from manyturn.cli.new_env import new_env

ENV = "my_calendar.py:MyCalendar"


def manyturn(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "manyturn", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def seconds() -> float:
    """What all processes that ended have used of a core."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_calendar_with_three_tools_is_learnt_without_an_option(tmp_path):
    new_env("my_calendar", tmp_path, "tools")
    assert manyturn(tmp_path, "check", ENV).returncode == 0
    began = seconds()
    trained = manyturn(tmp_path, "train", ENV)
    assert trained.returncode == 0, trained.stdout + trained.stderr
    assert seconds() - began < 600, "ten minutes of one core are promised"
    run = tmp_path / "runs" / "mycalendar-1"
    assert json.loads((run / "summary.json").read_text())["after"]["success"] > 0.5, trained.stdout
    evaluated = manyturn(tmp_path, "evaluate", str(run), "--out", "after")
    assert evaluated.returncode == 0, evaluated.stdout + evaluated.stderr
    found = json.loads((tmp_path / "after" / "summary.json").read_text())
    assert found["success"]["mean"] > 0.5 and found["invalid_action_rate"] < 0.2
    assert manyturn(tmp_path, "report", str(run)).returncode == 0 and (run / "report.html").is_file()
