"""A benchmark of rollouts that has no row of vLLM where it is installed, or whose requests vLLM does not take."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.usefixtures("vllm_package")]


def test_episodes_and_the_same_requests_without_environments_are_drawn_by_vllm(tmp_path):
    out = tmp_path / "rollout.json"
    words = ["--toy", "--repeats", "1", "--only", "speed, vllm", "--out", str(out)]
    command = [sys.executable, "-m", "benchmarks.speed.rollout", *words]
    subprocess.run(command, cwd=ROOT, check=True, timeout=1700)
    [row] = json.loads(out.read_text())["rows"]
    assert row["name"] == "speed, vllm" and row["median"]["raw_per_s"] > 0 < row["median"]["share"]
