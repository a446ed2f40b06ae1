"""TRL's rows of the learner's benchmark: other tokens, or another loss, than the rows they are compared with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from needs_host import host

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "learner.py"


def test_trl_is_measured_on_the_gradient_of_our_learner(tmp_path):
    host("trl")
    out = tmp_path / "learner.json"
    command = [sys.executable, str(BENCHMARK), "--toy", "--repeats", "1", "--only", "10 turns", "--out", str(out)]
    subprocess.run(command, check=True, timeout=280)
    rows = {row["name"].removeprefix("10 turns | "): row["best"] for row in json.loads(out.read_text())["rows"]}
    for context in ("whole", "history", "window"):
        ours, peers = rows[f"{context} | padding"], rows[f"{context} | trl"]
        assert peers["grad_norm"] == pytest.approx(ours["grad_norm"], rel=1e-3)
        assert peers["asked"] == ours["asked"] <= peers["computed"]
