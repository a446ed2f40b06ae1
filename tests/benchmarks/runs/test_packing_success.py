"""A comparison of the ways of packing that no longer runs, or whose runs differ in more than packing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BENCHMARK = "benchmarks.runs.packing"


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_runs_of_one_seed_begin_alike_and_differ_in_packing(tmp_path):
    out = tmp_path / "packing.json"
    command = [sys.executable, "-m", BENCHMARK, "--seeds", "1", "--steps", "1", "--jobs", "2", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=900)
    runs = {run["packing"]: run for run in json.loads(out.read_text())["runs"]}
    assert set(runs) == {"padding", "packed", "trie", "auto"}
    successes = [run["before"] for run in runs.values()]
    assert min(successes) > 0.05 and max(successes) - min(successes) < 0.1  # warm-ups pack too
    assert all(run["learn_cpu_seconds"] > 0 for run in runs.values())
