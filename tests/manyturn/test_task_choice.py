"""Chosen tasks must be those that are played, pinned and learnt from; a name of none must stop the command."""

import json
from pathlib import Path

import pytest

import manyturn as mt
from manyturn.agents.records.episode_rows import read_episodes
from manyturn.trainers.record.run_folder import read_config

COLOURS = ("red", "blue", "green", "black")
ENV = f"""
import manyturn as mt

class Shades(mt.TextEnv):
    instructions = "Name the colour."
    max_turns = 1

    def tasks(self, split):
        return [mt.Task(f"{{split}}/{{colour}}", split, {{"colour": colour, "split": split}}, tags=(colour[0],))
                for colour in {COLOURS}]

    def begin(self, task, rng):
        return task.params["colour"]

    def respond(self, action):
        return self.succeed("Yes.") if action == self.task.params["colour"] else self.fail("No.")

    def expert(self):
        return self.task.params["colour"]

    def admissible(self):
        return {list(COLOURS)}
"""
SIZES = {
    "model": {"width": 16, "layers": 1, "heads": 2},
    "agent.max_context": 128,
    "sampling.max_tokens": 8,
    "warmup.episodes": 0,
    "rollout": {"tasks": 4, "group": 2},
    "evaluation": {"limit": 2},
    "device": "cpu",
    "steps": 1,
}
CHOICES = {  # words for --tasks: the tasks in order
    ("test/green", "test/red"): ["test/green", "test/red"],
    ("test/green", "tag=b", "test/blue"): ["test/green", "test/blue", "test/black"],
    ("@ids.txt",): ["test/black", "test/blue"],
    ("failed:half", "test/red"): ["test/blue", "test/green", "test/red"],
}
REFUSED = {  # words for --tasks: the fix that is named
    "test/balck": "did you mean 'test/black'",
    "train/red": "split train",
    "test/red,test/blue": "test/red test/blue",
    "16": "--limit",
    "@missing.txt": "one a line",
    "@empty.txt": "one a line",
    "failed:hlf": "failed:half",
    "failed:expert": "reached the goal",
    "tag=x": "r",
    "": "leave tasks out",  # as of an empty list in a shell
}


@pytest.fixture
def shades(tmp_path, monkeypatch) -> str:
    """The environment, a list of ids, and an evaluation with one success, one failure, and one of each at a task."""
    monkeypatch.chdir(tmp_path)
    Path("shades.py").write_text(ENV)
    Path("ids.txt").write_text("test/black\n\ntest/blue\n")
    Path("empty.txt").write_text("\n")

    def half(observation, info):
        return observation if observation == "red" or (observation == "green" and info["repeat"]) else "none"

    mt.evaluate(half, "shades.py:Shades", tasks=["test/red", "test/blue", "test/green"], repeats=2, out="half")
    mt.evaluate("expert", "shades.py:Shades", out="expert")
    return "shades.py:Shades"


@pytest.mark.parametrize("words", CHOICES, ids=" ".join)
def test_the_tasks_that_are_named_are_pinned_and_played(command, shades, words):
    assert command("panel", "make", shades, "--tasks", *words).code == 0
    assert [task for task, _ in json.loads(Path("panel.json").read_text())["tasks"]] == CHOICES[words]
    assert command("evaluate", "random", "--env", shades, "--tasks", *words, "--out", "a").code == 0
    assert command("evaluate", "expert", "--env", shades, "--panel", "panel.json", "--out", "b").code == 0
    assert mt.compare("a", "b")["n_tasks"] == len(CHOICES[words])
    found = mt.evaluate("expert", shades, tasks=words, limit=1)
    assert list(found.panel.tasks) == CHOICES[words][:1], "a limit counts among the chosen"


@pytest.mark.parametrize("words", REFUSED)
def test_what_names_no_task_is_refused_with_the_fix(command, shades, words):
    for line in (("panel", "make", shades), ("evaluate", "expert", "--env", shades)):
        ended = command(*line, "--tasks", *filter(None, [words]))
        assert ended.code == 2 and REFUSED[words] in ended.err and ended.err.count("\n") == 1, ended.err
    assert not Path("panel.json").exists()


def test_an_evaluation_does_not_continue_over_other_tasks_nor_beside_a_panel(command, shades):
    words = ["evaluate", "expert", "--env", shades, "--tasks"]
    other = command(*words, "test/red", "--out", "expert")
    assert other.code == 2 and "panel" in other.err, other.err
    command("panel", "make", shades)
    both = command(*words, "test/red", "--panel", "panel.json")
    assert both.code == 2 and "--tasks" in both.err, both.err


def test_a_run_learns_from_the_tasks_that_are_named_and_keeps_their_ids(command, shades):
    """A list may change before the run is resumed."""
    pytest.importorskip("torch")
    Path("train.txt").write_text("train/green\ntrain/red\n")
    run = mt.train(shades, tasks=["@train.txt"], out="run", **SIZES)
    assert read_config(run.folder).tasks == ("train/green", "train/red")
    Path("train.txt").unlink()
    mt.resume(run.folder, steps=2)
    tables = sorted((run.folder / "episodes").glob("step_*.parquet"))
    assert len(tables) == 2
    assert {row["task"] for table in tables for row in read_episodes(table)} == {"train/green", "train/red"}
    ended = command("train", shades, "--tasks", "test/red", "--out", "other", "--device", "cpu")
    assert ended.code == 2 and "split test" in ended.err, ended.err
