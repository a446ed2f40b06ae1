"""Tasks that would stop a run after hours, or spoil what it reports, are found before anything is learnt."""

import asyncio

import pytest
from short_runs import short_run

from manyturn.agents.evaluation.evaluate import NotHeldOut
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.run.loop.loop import train

ENV = """
from collections.abc import Sequence
import manyturn as mt

class Env(mt.TextEnv):
    splits = {splits}

    def tasks(self, split):
        return {tasks}

    def begin(self, task, rng):
        open({played!r}, "w")
        return "Say tea."

    def respond(self, action):
        return self.succeed("Yes.") if action == "tea" else self.fail("No.")

    def admissible(self):
        return ["tea", "milk"]

    def expert(self):
        return "tea"
"""
THREE = ("train", "validation", "test")
OWN = '[mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(8)]'
SAME = '[mt.Task(f"{split}/{i}", split, {"i": i}) for i in range(8)]'


def begun(folder, tasks, splits=THREE, **changes):
    """Train on such tasks; an episode leaves a file."""
    text = ENV.format(tasks=tasks, splits=splits, played=str(folder / "played"))
    (folder / "env.py").write_text(text)
    env = {"id": f"{folder}/env.py:Env"}
    evaluation = {"limit": 4, **changes.pop("evaluation", {})}
    asyncio.run(train(short_run(env=env, steps=1, evaluation=evaluation, **changes), folder / "run"))


@pytest.mark.parametrize(
    ("tasks", "splits", "error", "told"),
    [
        (SAME, THREE, NotHeldOut, r"4 of the 4 tasks of env\.py:Env/test/4 are training tasks, first 'test/0', w"),
        (
            SAME.replace('"i": i', '"i": i + 9 * (split == "test")'),
            THREE,
            ConfigError,
            "4 of the first 4 validation tasks of .* are training tasks, first 'validation/0', which is 'train/0'",
        ),
        (OWN.replace("/{i}", "/{i // 2}"), THREE, ConfigError, "two tasks with the id 'train/0', both in train"),
        (OWN.replace("{split}/", ""), THREE, ConfigError, "two tasks with the id '0', in train and in validation"),
        ("[]", THREE, ConfigError, r"no task in its split 'train', which is learnt from: tasks\('train'\) is empty"),
        (f"{OWN} if split == 'train' else []", THREE, ConfigError, "no task in its split 'validation', on which"),
        (OWN, ("train", "test"), ConfigError, "no split 'validation', on which .*or set warmup.episodes = 0"),
        (OWN, ("train", "validation"), ConfigError, "no split 'test', on which results .* name one of them as evaluat"),
    ],
)
def test_tasks_that_cannot_do_are_found_before_any_is_played(tmp_path, tasks, splits, error, told):
    with pytest.raises(error, match=told) as refusal:
        begun(tmp_path, tasks, splits)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "played").exists() and not (tmp_path / "run").exists()


def test_a_split_that_nothing_plays_may_be_missing(tmp_path):
    begun(tmp_path, OWN, ("train", "test"), warmup={"episodes": 0})
    assert (tmp_path / "run" / "summary.json").is_file()


def test_one_problem_twice_under_one_id_is_one_task(tmp_path):
    begun(tmp_path, f"{OWN} * 2", warmup={"episodes": 0})
    assert (tmp_path / "run" / "summary.json").is_file()
