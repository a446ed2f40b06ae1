"""A comparison whose arms differ in more than what is compared, or that an interruption costs everything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.comparisons.mixture import PLAN, Cell, cells, config_of, verdicts

ROOT = Path(__file__).parents[3]


def test_each_environment_has_the_same_episodes_in_both_arms():
    together = config_of(Cell("together", 310))
    for name, env in together.environments.items():
        alone = config_of(Cell(name, 310))
        assert alone.env is not None and (alone.env.id, alone.env.args) == (env.id, env.args)
        assert alone.rollout.tasks * 3 == together.rollout.tasks and alone.steps == together.steps
        assert alone.warmup.episodes * 3 == together.warmup.episodes
        assert alone.warmup.max_updates * 3 == together.warmup.max_updates
        assert alone.model == together.model and alone.learner == together.learner
    grown, even = (config_of(Cell(arm, 310)) for arm in ("growing", "uniform"))
    assert grown == even.model_copy(update={"curriculum": grown.curriculum}) and even.curriculum.name == "uniform"
    assert len(list(cells(PLAN["seeds"]))) == 6 * len(PLAN["seeds"])


def test_a_difference_is_over_seeds_that_have_both_arms():
    rates = {"maze": 0.5, "household": 0.4, "desk": 0.9}
    lines = [{"arm": name, "seed": seed, "success": {name: rate}} for name, rate in rates.items() for seed in (1, 2)]
    lines += [{"arm": "together", "seed": 1, "success": {name: rate - 0.1 for name, rate in rates.items()}}]
    rows = {row[0]: row for row in verdicts(lines)}
    assert rows["together - apart, all three"][1] == "-0.100" and rows["together - apart, maze"][3] == "1"


@pytest.mark.deep
def test_the_comparison_runs_and_goes_on(tmp_path):
    words = [sys.executable, "-m", "benchmarks.comparisons.mixture", str(tmp_path / "runs"), "--toy", "--out"]
    command = [*words, str(tmp_path / "out.jsonl"), "--only", "together", "maze", "household", "desk", "growing"]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr[-2000:]
    again = subprocess.run([*command, "uniform"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr[-2000:]
    head, *lines = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert head["expected"] == PLAN["expected"] and {line["arm"] for line in lines} == {
        *("together", "maze", "household", "desk", "growing", "uniform")
    }
    assert lines == [line for line in map(json.loads, first.stdout.splitlines()[:5])] + lines[5:], "nothing runs twice"
    assert "growing - uniform, hard" in again.stdout and set(lines[4]["success"]) == {"easy", "medium", "hard"}
