"""A benchmark of rollouts that no longer runs, or whose replayed requests are not those that were asked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "rollout.py"


@pytest.mark.slow
def test_every_part_runs_at_toy_size(tmp_path):
    out = tmp_path / "rollout.json"
    command = [sys.executable, str(BENCHMARK), "--toy", "--repeats", "1", "--out", str(out)]
    subprocess.run(command, check=True, timeout=280)
    rows = {row["name"]: row["median"] for row in json.loads(out.read_text())["rows"]}
    assert len(rows) == 8
    for kind in ("running batch", "rounds"):
        assert rows[f"speed, {kind}"]["share"] > 0 and rows[f"memory, {kind}"]["kept_mb"] > 0
        assert rows[f"slow, {kind}"]["fast_s"] <= rows[f"slow, {kind}"]["all_s"]
