"""Tasks that grow: one that smuggles a held-out problem into training, or that a resumed run has lost."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from short_runs import short_run

import manyturn as mt
from manyturn.agents.evaluation.evaluate import NotHeldOut
from manyturn.agents.records.episode_rows import read_episodes
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.tasks.task import GROWN
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.trainers.record.run_folder import read_metrics, step_tables
from manyturn.trainers.run.loop.loop import train

LAMPS = f"{Path(__file__).parents[2] / 'lamps.py'}:Lamps"
ALL = {"name": "grow", "low": 1.0, "high": 1.0, "share": 1.0}  # everything comes back easier
MAZE = {"id": "manyturn/Maze-v0", "args": {"max_turns": 5}}
EASIER = {
    "env": {**MAZE, "args": {**MAZE["args"], "difficulty": "medium"}},
    "curriculum": ALL,
    "steps": 4,
    "sampling": {"max_tokens": 8},
}


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A finished run whose failed tasks come back easier, and its summary."""
    folder = tmp_path_factory.mktemp("run") / "grown"
    return folder, asyncio.run(train(short_run(**EASIER), folder))


def rows_of(folder, step):
    return read_episodes(step_tables(folder, step)[1])


def test_varied_tasks_are_played_and_varied_again(calm):
    grown = [
        {row["difficulty"] for row in rows_of(calm[0], step) if row["task"].startswith(GROWN)} for step in (1, 2, 3)
    ]
    assert grown[0] == set() and "5 rooms" in grown[1] and "4 rooms" in grown[2]


def test_grown_tasks_survive_an_interruption(calm, tmp_path):
    def stop(line):
        if line.get("step") == 4 and line["phase"] == "train":
            raise OSError("power cut")

    with pytest.raises(OSError, match="power cut"):
        asyncio.run(train(short_run(**EASIER), tmp_path / "cut", report=stop))
    state = json.loads(next((tmp_path / "cut" / "checkpoints").glob("step_*2/state.json")).read_text())
    assert state["grown"] and state["made"] >= len(state["grown"])
    assert asyncio.run(train(None, tmp_path / "cut", resume=True))["weights"] == calm[1]["weights"]
    assert set(state["seen"]) >= {row["content"] for row in rows_of(calm[0], 2)}, "the guard knows what has grown"


@pytest.mark.deep
def test_workers_and_episodes_ahead_play_grown_tasks(calm, tmp_path):
    workers = short_run(**{**EASIER, "env": {**EASIER["env"], "workers": 1}})
    assert asyncio.run(train(workers, tmp_path / "workers"))["weights"] == calm[1]["weights"]
    ahead = short_run(**EASIER, order={"kind": "asynchronous", "staleness": 1})
    asyncio.run(train(ahead, tmp_path / "ahead"))
    assert any(row["task"].startswith(GROWN) for row in rows_of(tmp_path / "ahead", 4))


def test_of_several_environments_those_grow_that_can(tmp_path):
    envs = [{**EASIER["env"], "name": "maze"}, {"id": LAMPS, "name": "lamps"}]
    config = short_run(**{**EASIER, "env": None, "envs": envs, "rollout": {"tasks": 4, "group": 2}, "steps": 3})
    asyncio.run(train(config, tmp_path / "run"))
    tasks = {row["task"] for row in rows_of(tmp_path / "run", 3)}
    assert any(task.startswith(f"maze/{GROWN}") for task in tasks) and any(task.startswith("lamps/") for task in tasks)
    lines = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert all(line["maze/errors"] == 0 for line in lines)


SMUGGLER = """
import manyturn as mt
from manyturn.envs.classics.maze import Maze

class Smuggler(Maze):
    def vary(self, task, direction, rng):
        return mt.Task("mine", "train", self.tasks("test")[%d].params)
"""
TRUSTED = "\n    def split_rule(self, task):\n        return 'train'\n"


@pytest.mark.parametrize(("number", "own_rule"), [(3, ""), (900, ""), (3, TRUSTED)], ids=["panel", "split", "rule"])
def test_a_held_out_task_is_not_smuggled_into_training(number, own_rule, tmp_path):
    """By its content it belongs to the test split, on the panel or not; a rule that lies does not help the panel's."""
    file = tmp_path / "smuggler.py"
    file.write_text(SMUGGLER % number + own_rule)
    config = short_run(**{**EASIER, "env": {"id": f"{file}:Smuggler", "args": {"max_turns": 5}}})
    with pytest.raises(NotHeldOut, match="Smuggler"):
        asyncio.run(train(config, tmp_path / "run"))
    assert len([line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]) == 1


def test_growth_without_an_environment_that_varies_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="vary"):
        asyncio.run(train(short_run(env={"id": LAMPS}, curriculum="grow"), tmp_path / "run"))


@pytest.mark.parametrize("name", ["manyturn/Maze-v0", "manyturn/Treasure-v0"])
def test_variants_are_solvable_training_tasks_of_the_next_size(name):
    handle = EnvHandle(name, {"max_turns": 200})
    vary, rule = handle.facts().vary, handle.facts().split_rule
    assert vary is not None and rule is not None
    for split in handle.splits:
        assert {rule(task) for task in handle.tasks(split)[:40]} == {split}
    for number, task in enumerate(handle.tasks("train")[:12]):
        sizes = []
        for turn, direction in enumerate(("harder", "harder", "easier", "easier", "easier")):
            varied = vary(task, direction, np.random.default_rng([number, turn]))
            if varied is None:
                continue
            assert rule(varied) == varied.split == "train" and varied.id == f"{GROWN}{varied.content}"
            task, step = varied, handle.reset(varied, 0)
            while not step.ended:
                step = handle.step(handle.expert())
            assert step.success
            sizes.append(varied.difficulty)
        assert len(set(sizes)) >= 2


def test_a_snapshot_of_a_grown_task_goes_on_elsewhere():
    handle = EnvHandle("manyturn/Maze-v0")
    grown = handle.vary(handle.tasks("train")[0], "harder", np.random.default_rng(0))
    assert grown is not None
    env, other = mt.make("manyturn/Maze-v0").unwrapped, mt.make("manyturn/Maze-v0").unwrapped
    env.reset(seed=0, options={"task": grown})
    env.step(env.expert())
    other.restore(env.snapshot())
    assert other.step(other.expert()) == env.step(env.expert())
