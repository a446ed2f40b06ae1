"""A plan that is not what the measured steps come to, or that is made of a clock that stood still."""

import json
import shutil
from pathlib import Path

import pytest

from manyturn.trainers.record.run_folder import RunFolderError, read_metrics
from manyturn.trainers.run.setup.duration_forecast import measured, plan

SECONDS = [(10.0, 2.0), (14.0, 3.0), (12.0, 1.0)]  # to play and to learn, of each step


@pytest.fixture
def run(tiny_run, tmp_path) -> Path:
    """A run of three steps like its first, whose clock is set; it began after 30 s, of which evaluations took 5."""
    folder = tmp_path / "run"
    shutil.copytree(tiny_run, folder)
    train = next(line for line in read_metrics(folder) if line["phase"] == "train")
    lines, now = [{"phase": "demonstrations", "step": 0, "seconds": 25.0}], 30.0
    for step, (play, learn) in enumerate(SECONDS, 1):
        now += play + learn + 0.5
        times = {"seconds": now - 0.5, "rollout_seconds": play, "learn_seconds": learn}
        lines.append(train | times | {"step": step})
        for table in ("episodes", "turns"):
            shutil.copy(tiny_run / table / "step_000001.parquet", folder / table / f"step_{step:06d}.parquet")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_as_it_was_measured_a_plan_is_what_it_took(run):
    found = measured(run)
    assert (found.begin, found.evaluation) == (30.0, 5.0)
    again = plan(found, 3, found.staleness, found.places)
    assert again.minutes * 60 == pytest.approx(30 + sum(map(sum, SECONDS)) + 2 * 0.5 + 5)
    twice = plan(found, 6, found.staleness, found.places)
    assert twice.minutes * 60 == pytest.approx(30 + 2 * (sum(map(sum, SECONDS)) + 2 * 0.5) + 5)


def test_fewer_steps_are_looked_at_if_it_is_asked_for(run):
    again = plan(measured(run, first=1), 3, 0, 32)
    assert again.minutes * 60 == pytest.approx(30 + 3 * 12 + 5)


def test_no_order_is_slower_than_the_stricter_one_and_none_faster_than_its_learner(run):
    found = measured(run)
    minutes = [plan(found, 40, staleness, 32 * (staleness + 1)).minutes for staleness in (0, 1, 4)]
    assert minutes == sorted(minutes, reverse=True) and minutes[0] > minutes[1]
    assert minutes[-1] * 60 > 40 * 2.0
    few, many = (plan(found, 40, 0, places) for places in (4, 32))
    assert few.minutes > many.minutes and few.places_idle < many.places_idle


def test_the_time_in_which_a_run_stood_still_is_not_planned_with(command, tiny_run, tmp_path):
    shutil.copytree(tiny_run, folder := tmp_path / "run")
    resumed = command("train", "--resume", folder, "--steps", 2)
    assert resumed.code in (0, None), resumed.err
    lines = read_metrics(folder)
    if lines[-1]["seconds"] >= lines[-2]["seconds"]:  # the second part may have taken longer
        lines[-2]["seconds"] = lines[-1]["seconds"] + 1
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = command("plan", folder)
    assert ended.code != 0 and "was interrupted and resumed" in ended.err and "--first" in ended.err
    assert command("plan", folder, "--first", 1).code in (0, None)


def test_a_run_that_was_interrupted_in_its_warm_up_can_be_planned_by(run):
    """Its steps were made in one go; what the sessions before took counts once."""
    lines = [{"phase": "warmup", "step": 0, "seconds": seconds} for seconds in (20.0, 40.0, 28.0)] + read_metrics(run)
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    costs = measured(run)
    assert (costs.begin, costs.evaluation) == (40.0 + 28.0 + 30.0, 5.0)
    assert plan(costs, 3, 0, 32).minutes * 60 == pytest.approx(98 + sum(map(sum, SECONDS)) + 2 * 0.5 + 5)


def test_the_command_prints_each_order_with_the_memory_of_the_run(command, run):
    ended = command("plan", run, "--staleness", 0, "--staleness", 2, "--places", 8, "--steps", 100)
    assert ended.code in (0, None) and "all 100 steps" in ended.out, ended.err
    rows = [line.split() for line in ended.out.splitlines() if line[:1] in "│|"]
    assert [row[1].rstrip("│") for row in rows] == ["0", "2"]
    assert json.loads((run / "summary.json").read_text())["peak_memory_mb"] > 50 and "main memory: " in ended.out


def test_what_cannot_be_planned_by_says_what_can(command, tiny_run, tmp_path):
    shutil.copytree(tiny_run, folder := tmp_path / "run")
    assert "give 1 or more" in command("plan", folder, "--places", 0).err
    assert "has made 1 steps" in command("plan", folder, "--first", 9).err
    (folder / "metrics.jsonl").write_text("")
    with pytest.raises(RunFolderError, match="--steps 3"):
        measured(folder)
