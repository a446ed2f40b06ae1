"""A benchmark of frozen layers that no longer runs, or whose rows are not those that it names."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "frozen_layers.py"


@pytest.mark.slow
def test_every_row_is_measured_at_toy_size(tmp_path):
    out = tmp_path / "frozen_layers.json"
    subprocess.run([sys.executable, str(BENCHMARK), "--toy", "--out", str(out)], check=True, timeout=280)
    rows = json.loads(out.read_text())["rows"]
    assert [(row["layers"], row["kept"]) for row in rows] == [
        (None, False),
        ([2, 4], False),
        ([2, 4], True),
        ([3, 4], False),
        ([3, 4], True),
    ]
    assert all(row["step_seconds"] >= row["update_seconds"] > 0 for row in rows)
