"""A run that stopped says how to go on where that can help, and nothing where it would fail the same way again."""

import json
import shutil
from pathlib import Path

import pytest

from manyturn.terminal.training_progress import TrainingReport
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.record.run_folder import read_config
from manyturn.trainers.record.stop_signal import Stopped

DOORS = Path(__file__).parents[1] / "trainers" / "doors.py"


@pytest.mark.parametrize(
    ("error", "helps"),
    [
        (Stopped(2, "SIGINT"), True),
        (KeyboardInterrupt(), True),
        (OSError(28, "no space"), True),
        (MemoryError(), True),
        (LearningFailed("three gradients"), False),
        (ValueError("of a library"), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_resuming_is_offered_where_it_can_help(tiny_run, capsys, error, helps):
    with pytest.raises(type(error)), TrainingReport(tiny_run, read_config(tiny_run)):
        raise error
    assert (f"stopped: manyturn train --resume {tiny_run} continues it" in capsys.readouterr().out) is helps


def test_a_run_that_its_tasks_refuse_offers_nothing_and_leaves_its_folder_free(command, tmp_path):
    (tmp_path / "doors.py").write_text(DOORS.read_text().replace("[6]}[split]", "[0]}[split]"))
    ended = command("train", f"{tmp_path}/doors.py:Doors", "--out", tmp_path / "run")
    assert ended.code == 2 and "are training tasks" in ended.err and "stopped" not in ended.out
    assert not (tmp_path / "run").exists() and "run folder" not in ended.out


def test_a_finished_run_is_continued_from_the_command_line(command, tiny_run, tmp_path):
    run = shutil.copytree(tiny_run, tmp_path / "run")
    ended = command("train", "--resume", run, "--steps", 2)
    assert ended.code == 0, ended.err
    assert "note: the learning rate falls to learner.lr_end = 0.1" in ended.out and "step        2" in ended.out
    assert ended.out.count(f", 2 steps; run folder {run}") == 1, "a log without a bar says how far it goes"
    assert "imitating" not in ended.out, "it had no warm-up"
    assert "resumes after step 1; 1 step to go" in ended.out and "to do" not in ended.out, "not the plan once more"
    assert f"advantage {read_config(run).credit.advantage.name}, " in ended.out
    assert json.loads((run / "summary.json").read_text())["steps"] == 2
    refused = command("train", "--resume", run, "--steps", 1)
    assert refused.code == 2 and "has done 2 steps already" in refused.err and "stopped" not in refused.out


def test_a_warmup_without_a_success_ends_with_its_code_and_offers_no_resuming(command, tmp_path):
    (tmp_path / "doors.py").write_text(DOORS.read_text())
    short = ["--warmup.max-updates", 2, "--warmup.episodes", 16, "--warmup.check-episodes", 4, "--model.width", 16]
    ended = command("train", f"{tmp_path}/doors.py:Doors", "--out", tmp_path / "run", *short)
    assert ended.code == 3 and ended.err.startswith("manyturn: the warm-up ended after 2 updates without a success")
    assert "cut" in ended.out and "stopped" not in ended.out
    assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])["cut"] >= 0
