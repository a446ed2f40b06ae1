"""A benchmark of the learner that no longer runs, or whose ways of packing learn from other tokens."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "learner.py"


@pytest.mark.slow
def test_every_way_of_packing_runs_at_toy_size(tmp_path):
    out = tmp_path / "learner.json"
    command = [sys.executable, str(BENCHMARK), "--toy", "--repeats", "1", "--only", "10 turns", "--out", str(out)]
    subprocess.run(command, check=True, timeout=280)
    rows = {row["name"].removeprefix("10 turns | "): row["best"] for row in json.loads(out.read_text())["rows"]}
    assert len(rows) >= 9 and rows["history | padding"]["times_history"] == 1
    for context in ("whole", "history", "window"):
        padded, packed, shared = (rows[f"{context} | {packing}"] for packing in ("padding", "packed", "trie"))
        assert padded["asked"] == packed["asked"] == packed["computed"] == shared["asked"]
        assert padded["computed"] >= packed["computed"] >= shared["computed"]
    assert rows["history | trie"]["computed"] == rows["whole | trie"]["computed"]
