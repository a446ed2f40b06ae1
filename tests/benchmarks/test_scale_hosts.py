"""A benchmark of hosts that no longer runs, or whose episodes are not open at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "scale_hosts.py"


@pytest.mark.slow
def test_it_runs_at_toy_size(tmp_path):
    out = tmp_path / "scale_hosts.json"
    subprocess.run([sys.executable, str(BENCHMARK), "--toy", "--out", str(out)], check=True, timeout=280)
    local, one, several = json.loads(out.read_text())["rows"]
    assert local["open_at_once"] == one["open_at_once"] == several["open_at_once"] == 40
    assert local["hosts_mb"] == 0 < one["hosts_mb"] < several["hosts_mb"]
