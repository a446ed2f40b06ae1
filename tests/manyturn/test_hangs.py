"""No environment may hold a command up where a timeout is asked for, or end it without a word."""

from pathlib import Path

import psutil
import pytest

from manyturn.trainers.run.setup import run_builder

TRAPS = Path(__file__).parents[1] / "envs" / "traps.py"
BRIEF = (
    *("--model.width", 16, "--model.layers", 1, "--model.heads", 2, "--model.sample-tasks", 4, "--steps", 0),
    *("--warmup.episodes", 0, "--evaluation.limit", 2, "--env.workers", 2, "--rollout.attempts", 1),
)


@pytest.mark.parametrize("cls", ["Spins", "Leaves"])
def test_training_ends_in_one_line_before_any_step(cls, command, tmp_path):
    ended = command("train", f"{TRAPS}:{cls}", *BRIEF, "--env.timeout", 0.5, "--out", tmp_path / "run")
    assert ended.code == 5
    assert "vocabulary" in ended.err and "Run manyturn check" in ended.err and ended.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_training_says_how_far_the_vocabulary_is(command, tmp_path, monkeypatch):
    monkeypatch.setattr(run_builder, "_VOCABULARY_SECONDS", 0)
    ended = command("train", f"{TRAPS}:Garbles", *BRIEF, "--out", tmp_path / "run")
    assert ended.code == 0, ended.err
    assert "words of task 4 of 4" in ended.out


@pytest.mark.parametrize(
    ("cls", "words"),
    [("Unready", "it hung at traps.py, line"), ("Unlisted", "in tasks; let it answer sooner"), ("Gone", "status 7")],
)
def test_what_hangs_when_it_is_made_is_found_before_this_process_makes_it(cls, words, command, tmp_path):
    ended = command("train", f"{TRAPS}:{cls}", *BRIEF, "--env.timeout", 0.5, "--out", tmp_path / "run")
    assert ended.code == 2 and ended.err.count("\n") == 1
    assert f"{cls} cannot be used: " in ended.err and words in ended.err


def test_a_constructor_that_takes_all_memory_ends_before_the_machine_does(command, tmp_path):
    words = ("--env.timeout", 30, "--env.limits.memory_mb", 150, "--out", tmp_path / "run")
    ended = command("train", f"{TRAPS}:Greedy", *BRIEF, *words)
    assert ended.code == 2 and ended.err.count("\n") == 1
    assert "held memory_mb = " in ended.err and "raise env.limits" in ended.err


@pytest.mark.parametrize("what", ["threads", "processes"])
def test_a_check_of_a_greedy_constructor_ends_the_check(what, command):
    before = psutil.Process().children(recursive=True)  # those of tests that ran in this process
    ended = command("check", f"{TRAPS}:Greedy", "--env.args.what", what)
    assert ended.code == 2 and f"it held {what} = " in ended.out and "let it hold less" in ended.out
    left = [process for process in psutil.Process().children(recursive=True) if process not in before]
    assert not [process for process in left if process.is_running()]


@pytest.mark.deep
def test_an_evaluation_ends_what_hangs_within_the_time_that_is_given(command):
    words = ("--limit", 2, "--env.workers", 1, "--env.timeout", 0.5)
    ended = command("evaluate", "random", "--env", f"{TRAPS}:Spins", *words)
    assert ended.code == 5 and "traps.py" in ended.err and "in respond" in ended.err, ended.err
