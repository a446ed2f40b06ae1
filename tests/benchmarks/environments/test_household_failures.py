"""Failures of the household level that are counted as another kind of failure, or that are no failures."""

import json
import subprocess
import sys

import pytest

from benchmarks.environments import household_failures

EVALUATED = ["--env", "manyturn/Household-v0", "--env.args.difficulty", "tiny", "--limit", "12"]


@pytest.mark.deep
def test_the_expert_takes_what_the_task_names_and_random_play_takes_something_else(tmp_path, monkeypatch):
    for seed, policy in enumerate(("expert", "random")):
        folder = str(tmp_path / f"seed-{seed}" / "evaluation")
        subprocess.run([sys.executable, "-m", "manyturn", "evaluate", policy, *EVALUATED, "--out", folder], check=True)
    out = tmp_path / "failures.json"
    monkeypatch.setattr("sys.argv", [household_failures.__file__, str(tmp_path), "--out", str(out)])
    household_failures.main()
    expert, random = json.loads(out.read_text())["runs"]
    assert (expert["failed"], expert["of_failed"]) == (0, {})
    assert expert["of_successful"] == {"took the object": 12}
    missed = random["of_failed"]
    assert random["failed"] >= 10 and missed["took another object"] >= 6 and missed["wandered"] >= 6
    sightings = missed["never saw the object"] + missed["saw the object and never took it"] + missed["took the object"]
    assert sightings == random["failed"]
