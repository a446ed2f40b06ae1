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
    for world in json.loads(out.read_text())["worlds"]:
        synchronous, *others = world["rows"]
        orders = [row["name"].removeprefix("asynchronous, k = ") for row in others]
        assert synchronous["name"] == "synchronous" and orders == ["1", "4", "8", "4, any", "4, drop"]
        for row, order in zip(others, orders, strict=True):
            assert row["staleness_max"] <= int(order[0]) and (row["length_bias"] == 0 or "drop" in order)
            assert row["predicted_per_hour"] >= synchronous["predicted_per_hour"]
