"""A comparison with an earlier quickstart that runs the same code twice, or that leaves its work tree behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from quickstart_since import PLAN, judged

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("after", "cpu_seconds", "expected"), [(0.94, 60.0, True), (0.9, 60.0, False), (0.95, 70.0, False)]
)
def test_less_success_or_too_little_time_saved_is_not_as_expected(after, cpu_seconds, expected):
    runs = {"earlier": [{"after": 0.95, "cpu_seconds": 100.0}], "now": [{"after": after, "cpu_seconds": cpu_seconds}]}
    assert judged(PLAN, runs)["as_expected"] is expected


@pytest.mark.slow
def test_the_earlier_run_is_of_the_earlier_code(tmp_path):
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("no history here: the earlier commit is in a full clone")
    trees = git("worktree", "list").split()[::3]
    out = tmp_path / "since.json"
    command = [sys.executable, "benchmarks/quickstart_since.py", "--seeds", "1", "--steps", "1", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=280)
    found = json.loads(out.read_text())["runs"]
    [earlier], [now] = found["earlier"], found["now"]
    assert earlier["steps"] == now["steps"] == 1
    assert earlier["cpu_seconds"] > 0 and now["cpu_seconds"] > 0
    assert git("worktree", "list").split()[::3] == trees
