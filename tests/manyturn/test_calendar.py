"""Three tools called by JSON, trained without an option: it once ran at 100 % invalid to its end, and said nothing."""

import json
from pathlib import Path

import pytest

CALENDAR = Path(__file__).parents[1] / "trainers" / "appointments.py"


@pytest.mark.slow
def test_an_environment_with_tools_learns_without_an_option(command, tmp_path):
    """Of all options only the number of steps is given, so that the test ends in a minute."""
    ended = command("train", f"{CALENDAR}:Calendar", "--out", tmp_path / "run", "--steps", 5)
    assert ended.code == 0, ended.err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["after"]["success"] > 0.5 and summary["after"]["cut"] < 0.1 and summary["after"]["invalid"] < 0.3
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {"cut", "invalid", "parts/looked", "parts/outcome"} <= lines[-1].keys() and lines[-1]["phase"] == "train"
    assert "  looked 0." in ended.out and " cut " in ended.out
    assert command("report", tmp_path / "run").code == 0
