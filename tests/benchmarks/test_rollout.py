"""A benchmark of rollouts that no longer runs, whose replayed requests are not those that were asked, or whose figures
on the page are other ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import rollout_table

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "rollout.py"


@pytest.mark.slow
def test_every_part_runs_at_toy_size(tmp_path):
    out = tmp_path / "rollout.json"
    command = [sys.executable, str(BENCHMARK), "--toy", "--repeats", "1", "--out", str(out)]
    subprocess.run(command, check=True, timeout=280)
    rows = {row["name"]: row["median"] for row in json.loads(out.read_text())["rows"]}
    assert len(rows) == 8
    for kind in ("running batch", "rounds"):
        assert rows[f"speed, {kind}"]["share"] > 0 < rows[f"speed, {kind}"]["first_share"]
        assert rows[f"memory, {kind}"]["kept_mb"] > 0
        assert rows[f"slow, {kind}"]["fast_s"] <= rows[f"slow, {kind}"]["all_s"]


def test_the_page_has_the_figures_that_were_measured():
    text = rollout_table.PAGE.read_text()
    known = json.loads(rollout_table.RESULT.read_text())
    assert rollout_table.page(text, known) == text, "run python benchmarks/rollout_table.py"
    assert all(f"| {row['name'].partition(', ')[2]} |" in text for row in known["rows"])
