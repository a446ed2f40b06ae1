"""A benchmark of rewards that no longer runs, or a page with other figures than the result's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RESULT = json.loads((ROOT / "benchmarks/results/reward_scorecard.json").read_text())


def test_the_table_of_the_page_is_that_of_the_result():
    command = [sys.executable, "-m", "benchmarks.environments.reward_scorecard_table"]
    made = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert made.strip() in (ROOT / "docs/scorecard.md").read_text() and made.count("\n") == len(RESULT["worlds"]) + 2


@pytest.mark.slow
def test_a_world_is_probed_again_with_the_same_figures(tmp_path):
    command = [sys.executable, "-m", "benchmarks.environments.reward_scorecard", "--only", "Maze", "gcd"]
    out = tmp_path / "result.json"
    subprocess.run([*command, "--samples", str(RESULT["samples"]), "--out", out], cwd=ROOT, check=True, timeout=600)
    again = json.loads(out.read_text())["worlds"]
    assert "Maze easy" in again
    for name, world in again.items():
        expected = RESULT["worlds"][name]
        assert [world[key] for key in ("expert", "random", "kinds")] == [
            expected[key] for key in ("expert", "random", "kinds")
        ]
