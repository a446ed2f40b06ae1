"""A run that learns nothing says so, with the reason, and ends by itself where nobody watches it."""

import asyncio
from pathlib import Path

import pytest
from short_runs import short_run

from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.step.no_signal import NoSignal

WORLD = f"{Path(__file__).with_name('dead_ends.py')}:DeadEnds"
PLAIN = {
    "agent": {"only_admissible": True},  # no reply is cut, so that all act
    "sampling": {"max_tokens": 8},
    "warmup": {"episodes": 0},
    "rollout": {"tasks": 2, "group": 3, "cut_share": 1.0},
    "credit": {"advantage": "grpo"},
    "objective": {"name": "clip"},
    "evaluation": {"limit": 2},
}


def dead(folder, why, **more):
    """The notices and the summary of a run in a world where nothing can be learnt."""
    lines = []
    config = short_run(**{**PLAIN, "env": {"id": WORLD, "args": {"why": why}}, "steps": 4, **more})
    summary = asyncio.run(train(config, folder / "run", report=lines.append))
    return [line["notice"] for line in lines if line["phase"] == "notice"], summary


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("failed", "every episode failed"),
        ("succeeded", "every episode succeeded"),
        ("invalid", "every reply was invalid"),
        ("cancel", "parts of the reward cancel"),
    ],
)
def test_a_dead_run_says_why_it_learns_nothing(tmp_path, why, reason):
    notices, summary = dead(tmp_path, why)
    [notice] = [notice for notice in notices if "taught nothing" in notice]
    assert reason in notice and summary["learned_steps"] == 0


def test_a_run_that_nobody_watches_ends_with_its_own_exit_code_and_can_be_resumed(tmp_path, command):
    with pytest.raises(NoSignal, match="every episode failed"):
        dead(tmp_path, "failed", stopping={"no_signal": 2})
    for is_last in (False, True, True):  # of the last step the figures are written, and the exit code is no success
        ended = command("train", "--resume", tmp_path / "run")
        assert ended.code == 6 and "stopping.no_signal" in ended.err and ended.err.count("every episode failed") >= 1
        assert (tmp_path / "run" / "summary.json").is_file() == is_last
