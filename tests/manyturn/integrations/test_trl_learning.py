"""TRL's real trainer with our credit: a run whose updates teach nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from needs_host import host  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_success_in_held_out_mazes_rises_on_each_seed_while_trl_learns_from_gigpo_for_each_token(tmp_path):
    host("trl")
    out = tmp_path / "trl_maze.json"
    command = [sys.executable, "-m", "benchmarks.runs.trl_maze", "--seeds", "2", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True)
    seeds = json.loads(out.read_text())["seeds"]
    assert [one["seed"] for one in seeds] == [0, 1]
    for one in seeds:
        assert one["before"] > 0.15 and one["n_tasks"] == 200  # there is something to learn from
        assert one["ci_low"] > 0.1 and one["after"] > 0.65  # 95 %, paired by maze
