"""A benchmark of rollouts that no longer runs, whose replayed requests are not those that were asked, or whose figures
on the page are other ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.speed import rollout_table

ROOT = Path(__file__).parents[3]
BENCHMARK = "benchmarks.speed.rollout"


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_every_part_runs_at_toy_size(tmp_path):
    out = tmp_path / "rollout.json"
    command = [sys.executable, "-m", BENCHMARK, "--toy", "--repeats", "1", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=900)
    rows = {row["name"]: row["median"] for row in json.loads(out.read_text())["rows"]}
    assert len(rows) == 8
    for kind in ("running batch", "rounds"):
        assert rows[f"speed, {kind}"]["share"] > 0 < rows[f"speed, {kind}"]["first_share"]
        assert rows[f"memory, {kind}"]["kept_mb"] > 0
        assert rows[f"slow, {kind}"]["fast_s"] <= rows[f"slow, {kind}"]["all_s"]


def test_the_page_has_the_figures_that_were_measured():
    text = rollout_table.PAGE.read_text()
    known = json.loads(rollout_table.RESULT.read_text())
    assert rollout_table.page(text, known) == text, "run python -m benchmarks.speed.rollout_table"
    assert all(f"| {row['name'].partition(', ')[2]} |" in text for row in known["rows"])
