"""A benchmark of plans that no longer runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "plan.py"


@pytest.mark.slow
def test_a_plan_is_compared_with_what_a_run_took(tmp_path):
    out = tmp_path / "plan.json"
    few = ["--recipes", "quickstart", "--steps", "2", "--first", "1", "2"]
    subprocess.run([sys.executable, str(BENCHMARK), *few, "--out", str(out)], check=True, timeout=900)
    [row] = json.loads(out.read_text())["rows"]
    assert row["steps"] == 2 and row["minutes"] > 0
    assert {plan["planned_minutes"] > 0 for plan in row["by_first_steps"].values()} == {True}
