"""Several environments in one run: one that leaks into another, or into what it is tested on; figures of nobody."""

import asyncio
import json
import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from short_runs import short_run

import manyturn as mt
from manyturn.agents.evaluation.evaluate import NotHeldOut
from manyturn.agents.records.episode_rows import read_episodes
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.tasks.mixed_tasks import MixedTasks
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskFeedback, TaskPool
from manyturn.trainers.play.tasks.env_shares import drawn_tasks
from manyturn.trainers.record.run_folder import read_metrics, step_tables
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.warmup.imitation_batches import DemonstrationStream

LAMPS = f"{Path(__file__).parents[2] / 'lamps.py'}:Lamps"
MAZE = {"id": "manyturn/Maze-v0", "name": "maze", "args": {"max_turns": 4}, "weight": 2.0}
ENVS: list[Any] = [MAZE, {"id": LAMPS, "name": "lamps"}]
TASKS = {"tasks": 3, "group": 2}


def mixed(envs: Any = ENVS, **changes: Any) -> Any:
    return short_run(**{"env": None, "envs": envs, "rollout": TASKS, "steps": 3, **changes})


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A finished run and its summary."""
    folder = tmp_path_factory.mktemp("run") / "mixed"
    return folder, asyncio.run(train(mixed(), folder))


def test_each_step_has_the_share_of_each_environment_and_no_group_mixes_them(calm):
    for step in (1, 2, 3):
        rows = read_episodes(step_tables(calm[0], step)[1])
        assert Counter(row["task"].split("/")[0] for row in rows) == {"maze": 4, "lamps": 2}
        assert all(count == 2 for count in Counter(row["task"] for row in rows).values()), "a group is of one task"


def test_figures_are_of_each_environment_and_of_all_together(calm):
    folder, summary = calm
    line = next(line for line in read_metrics(folder) if line["phase"] == "train")
    assert line["return"] == pytest.approx((2 * line["maze/return"] + line["lamps/return"]) / 3)
    assert summary["panel"]["n_tasks"] == 12 and set(summary["envs"]) == {"maze", "lamps"}
    for name in ("before", "after", "random", "expert", "after_greedy"):
        of_each = [summary["envs"][env][name]["success"] for env in ("maze", "lamps")]
        assert summary[name]["success"] == pytest.approx(sum(of_each) / 2), name
    for env, own in summary["envs"].items():
        alone = json.loads((folder / "evaluation" / env / "summary.json").read_text())
        assert own["after"]["success"] == alone["success"]["mean"] and own["panel"] == alone["panel"]
        assert own["env_identity"] == alone["env_identity"], "as evaluate says it of this environment"


def test_an_interrupted_run_goes_on_to_the_same_bits(calm, tmp_path):
    def stop(line):
        if line.get("step") == 3 and line["phase"] == "train":
            raise OSError("power cut")

    with pytest.raises(OSError, match="power cut"):
        asyncio.run(train(mixed(), tmp_path / "cut", report=stop))
    assert asyncio.run(train(None, tmp_path / "cut", resume=True))["weights"] == calm[1]["weights"]


def test_workers_of_one_environment_change_nothing(calm, tmp_path):
    summary = asyncio.run(train(mixed([MAZE, {**ENVS[1], "workers": 1}]), tmp_path / "run"))
    assert summary["weights"] == calm[1]["weights"]


def test_episodes_that_are_played_ahead_are_of_all_environments(tmp_path):
    asyncio.run(train(mixed(order={"kind": "asynchronous", "staleness": 1}), tmp_path / "run"))
    lines = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert len(lines) == 3 and all(line["maze/turns"] and line["lamps/turns"] for line in lines)


def test_a_run_is_evaluated_in_one_of_its_environments_on_tasks_that_none_taught(calm, capsys):
    folder, summary = calm
    with pytest.raises(ValueError, match="--env"):
        mt.evaluate(str(folder))
    found = mt.evaluate(str(folder), "maze", limit=6)
    assert found.summary["args"] == MAZE["args"] and "another environment" not in capsys.readouterr().err
    assert found.summary["success"]["mean"] == summary["envs"]["maze"]["after"]["success"]
    with pytest.raises(NotHeldOut):
        mt.evaluate(str(folder), "lamps", split="train", limit=12 * 3)


ENV = """
import manyturn as mt

class Env(mt.TextEnv):
    splits = ("train", "validation", "test")

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"i": i}) for i in RANGES[split]]

    def begin(self, task, rng):
        return "Say tea."

    def respond(self, action):
        return self.succeed("Yes.") if action == "tea" else self.fail("No.")

    def expert(self):
        return "tea"

RANGES = {"train": range(%d, %d), "validation": range(20, 24), "test": range(30, 34)}
"""


def env_file(folder, first, last):
    (folder / f"env{first}.py").write_text(ENV % (first, last))
    return {"id": f"{folder / f'env{first}.py'}:Env", "name": f"env{first}"}


def test_no_environment_teaches_what_another_one_is_tested_on(tmp_path):
    envs = [env_file(tmp_path, 0, 9), env_file(tmp_path, 31, 39)]
    with pytest.raises(NotHeldOut, match="test/31"):
        asyncio.run(train(mixed(envs), tmp_path / "run"))


def test_an_environment_that_has_changed_stops_a_resumed_run_by_its_name(calm, tmp_path):
    shutil.copytree(calm[0], tmp_path / "run")
    newest = max((tmp_path / "run" / "checkpoints").glob("step_*"))
    state = json.loads((newest / "state.json").read_text())
    state["env_identity"]["members"]["lamps"]["files"]["lamps.py"] = "0" * 16
    edited = json.dumps(state).encode()
    manifest = json.loads((newest / "manifest.json").read_text())
    (newest / "state.json").write_bytes(edited)
    manifest["files"]["state.json"] = {"sha256": sha256(edited).hexdigest(), "bytes": len(edited)}
    (newest / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ConfigError, match=r"lamps: lamps\.py differs"):
        asyncio.run(train(None, tmp_path / "run", resume=True))


ONE = {"id": "manyturn/Maze-v0"}
BARE = {"episodes": 0}
REFUSED = {
    "env": {"env": ONE},
    "env.workers": {"env": {"workers": 2}},
    "two and more": {"envs": [ONE]},
    "name": {"envs": [ONE, ONE]},
    "weights": {"curriculum": "dump", "warmup": BARE},
    "warmup.trajectories": {"warmup": {"episodes": 4, "trajectories": "folder"}},
    "hosts": {"placement": {"kind": "ray", "hosts": 1}},
    "agent.format": {
        "agent": {"format": "tool_call"},
        "envs": [MAZE, {"id": LAMPS, "args": {"calls": True}}],
        "sampling": {"max_tokens": 32},
    },
    "roles": {"envs": [MAZE, {"id": f"{Path(__file__).parents[2] / 'duet.py'}:Duet"}]},
    "lamps": {"tasks": ["maze/train/easy/0"]},
    "maze/train/easy/x": {"tasks": ["maze/train/easy/x"]},
}


@pytest.mark.parametrize("fix", REFUSED)
def test_what_is_of_one_environment_is_refused_with_the_fix(fix, tmp_path):
    with pytest.raises(ValueError) as refusal:
        asyncio.run(train(mixed(**REFUSED[fix]), tmp_path / "run"))
    assert fix in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("words", [("envs", ["manyturn/Maze-v0", LAMPS]), ("env", {"id": LAMPS})])
def test_one_environment_takes_the_place_of_several_and_several_of_one(words):
    from manyturn.api.training import configured

    name, value = words
    below = "quickstart" if name == "envs" else "three-worlds-tiny"
    config = configured((below,), {name: value})
    assert list(config.environments) == (["Maze-v0", "Lamps"] if name == "envs" else [LAMPS])
    assert not any(env.args for env in config.environments.values()), "arguments of the other ones are gone"


SIZES = {"small": 40, "large": 4000}
POOL = MixedTasks({env: [mt.Task(f"train/{n}", "train", {"n": n}) for n in range(size)] for env, size in SIZES.items()})


def pool(step, feedback=(), count=8):
    return TaskPool(POOL, count, seed=0, step=step, feedback=feedback)


def taught(number, env, success=0.5, advantage=0.5):
    return TaskFeedback(number, env, success, success, advantage, True, 4)


@pytest.mark.parametrize("name", ["uniform", "band", "mopps", "pcl", "spo_weights"])
def test_a_curriculum_of_tasks_has_the_share_of_each_environment_and_its_own_memory(name):
    weights, config = {"small": 3.0, "large": 1.0}, CURRICULA.parse(name)
    counts, memory, feedback = Counter[str](), {}, list[TaskFeedback]()
    for step in range(1, 21):
        drawn, memory = drawn_tasks(config, memory, pool(step, feedback, count=6), weights)
        assert len(set(drawn)) == 6
        envs = ["small" if number < 40 else "large" for number in drawn]
        counts.update(envs)
        feedback = [taught(number, env) for number, env in zip(drawn, envs, strict=True)]
    assert abs(counts["small"] - 90) <= 8, "4.5 of 6 a step"
    json.dumps(memory)


def test_uniform_drawing_passes_over_each_environment_before_a_task_comes_again():
    memory, seen = {}, Counter[int]()
    for step in range(1, 11):  # shares of 3.2 and 4.8 tasks
        drawn, memory = drawn_tasks(CURRICULA.parse("uniform"), memory, pool(step), {"small": 2.0, "large": 3.0})
        seen.update(drawn)
    assert max(seen.values()) == 1


@pytest.mark.parametrize("name", ["dump", "sec"])
def test_a_curriculum_of_kinds_chooses_the_environment_that_teaches(name):
    feedback = [taught(n, "small", advantage=2.0) for n in range(8)]
    feedback += [taught(40 + n, "large", advantage=0.0) for n in range(8)]
    memory = {}
    for step in range(2, 30):
        drawn, memory = drawn_tasks(CURRICULA.parse(name), memory, pool(step, feedback), {"small": 1.0, "large": 1.0})
    assert sum(number < 40 for number in drawn) >= 7
    first, _ = drawn_tasks(CURRICULA.parse(name), {}, pool(1, count=64), {"small": 1.0, "large": 1.0})
    assert sum(number < 40 for number in first) > 16, "a long list of tasks does not crowd out a short one"


def test_streamed_demonstrations_have_the_share_of_each_environment(tmp_path):
    """By weight over the updates that are played together, and the same ones whenever an update is asked for."""
    config = mixed(warmup={"episodes": "stream", "labels": "expert", "noise": 0.5, "batch": 3, "check_every": 4})

    async def streamed() -> list[str]:
        episodes = list[Any]()
        async with open_run(config) as run:
            await DemonstrationStream(run, episodes.extend).batch(1)
        return [episode.task.id for episode in episodes]

    tasks = asyncio.run(streamed())
    assert Counter(task.split("/")[0] for task in tasks) == {"maze": 8, "lamps": 4}
    assert tasks == asyncio.run(streamed()) and {task.split("/")[0] for task in tasks[:6]} == {"maze", "lamps"}
