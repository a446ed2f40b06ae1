"""The seconds of the quickstart at two commits are of the trees of these commits, each started as a user does."""

import json
import subprocess
import sys

import pytest

from benchmarks.kit.provenance import ROOT

SHORT = "--steps=1 --warmup.episodes=16 --warmup.max-updates=2 --warmup.check-every=2 --warmup.check-episodes=2 "
SHORT += "--evaluation.limit=2 --evaluation.every=0 --rollout.tasks=2 --rollout.group=2"


@pytest.mark.deep
def test_both_commits_run_and_their_seconds_and_success_are_written(tmp_path):
    out, words = tmp_path / "first_run.json", [f"--words={SHORT}", "--repeats", "1"]
    command = [sys.executable, "-m", "benchmarks.speed.first_run", "HEAD", *words, "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True)
    result = json.loads(out.read_text())
    for name in ("before", "after"):
        [run] = result["runs"][name]
        assert result["seconds"][name] == run["seconds"] and run["cpu_seconds"] > 0 and "playing" in run["parts"]
        assert set(run["success"]) == {"before", "before_greedy", "after", "after_greedy"}
    assert result["runs"]["before"][0]["success"] == result["runs"]["after"][0]["success"]
