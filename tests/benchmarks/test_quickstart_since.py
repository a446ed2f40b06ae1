"""A comparison with an earlier quickstart that runs the same code twice, or that leaves its work tree behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_earlier_run_is_of_the_earlier_code(tmp_path):
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("no history here: the earlier commit is in a full clone")
    trees = git("worktree", "list")
    out = tmp_path / "since.json"
    command = [sys.executable, "benchmarks/quickstart_since.py", "--seeds", "1", "--steps", "1", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=280)
    found = json.loads(out.read_text())["runs"]
    [earlier], [now] = found["earlier"], found["now"]
    assert earlier["steps"] == now["steps"] == 1
    assert earlier["cpu_seconds"] > 0 and now["cpu_seconds"] > 0
    assert git("worktree", "list") == trees
