"""A benchmark of hosts on Ray that no longer runs."""

import json
import subprocess
import sys
from pathlib import Path

from needs_host import host as need

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "scale_ray.py"


def test_it_runs_at_toy_size(tmp_path):
    need("ray")
    out = tmp_path / "scale_ray.json"
    subprocess.run([sys.executable, str(BENCHMARK), "--toy", "--out", str(out)], check=True, timeout=280)
    one, several = json.loads(out.read_text())["rows"]
    assert (one["hosts"], several["hosts"]) == (1, 2) and one["episodes_per_s"] > 0 < several["episodes_per_s"]
