"""A benchmark of the orders of training that no longer runs, or in which one of them plays other tasks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "scale_out.py"


@pytest.mark.slow
def test_every_order_runs_at_toy_size_on_the_same_tasks(tmp_path):
    out = tmp_path / "scale_out.json"
    subprocess.run([sys.executable, str(BENCHMARK), "--toy", "--out", str(out)], check=True, timeout=280)
    synchronous, *others = json.loads(out.read_text())["rows"]
    assert synchronous["name"] == "synchronous" and [row["name"][-1] for row in others] == ["1", "4", "8"]
    for row in others:
        assert row["staleness_max"] <= int(row["name"][-1]) and row["length_bias"] == 0
        assert row["predicted_per_hour"] >= synchronous["predicted_per_hour"]
