"""Tries on Household that no longer run, or that begin from another warm-up than the page says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "household_level.py"


@pytest.mark.slow
def test_the_tries_run_at_toy_size_and_those_of_gigpo_begin_from_the_first(tmp_path):
    out = tmp_path / "toy.json"
    command = [sys.executable, str(BENCHMARK), str(tmp_path / "runs"), "--toy", "--out", str(out)]
    subprocess.run(command, check=True, timeout=280)
    rows = {row["name"]: row for row in json.loads(out.read_text())["rows"]}
    assert [len(row["steps"]) for row in rows.values()] == [0, 0, 1, 1]
    assert len(rows["imitation"]["checks"]) == 2
    for name in ("GiGPO at 5e-4", "GiGPO at 2e-3"):
        assert rows[name]["before"]["success"] == rows["imitation"]["before"]["success"]
        assert not rows[name]["checks"]
