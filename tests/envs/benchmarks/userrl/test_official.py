"""The official files, where they are: a checkout of SalesforceAIResearch/UserRL in ``$MANYTURN_DATA/userrl``."""

from pathlib import Path

import pytest
from needs_files import data

from manyturn.envs.benchmarks.userrl.base_gym import Gym
from manyturn.envs.benchmarks.userrl.function_gym import Function
from manyturn.envs.benchmarks.userrl.intention_gym import Intention
from manyturn.envs.benchmarks.userrl.persuade_gym import Persuade
from manyturn.envs.benchmarks.userrl.telepathy_gym import Telepathy
from manyturn.envs.benchmarks.userrl.turtle_gym import Turtle

NOBODY = {"kind": "model", "model": "m", "base_url": "http://127.0.0.1:9/v1"}


@pytest.fixture(scope="module")
def official() -> Path:
    data("userrl/gyms")
    return data("userrl")


@pytest.mark.parametrize(
    ("gym", "train", "test"),
    [(Intention, 380, 40), (Persuade, 378 - 11, 42), (Telepathy, 360, 41), (Turtle, 423, 48)],
)
def test_every_official_problem_is_a_task_and_opens(gym: type[Gym], train: int, test: int, official) -> None:
    env = gym(data=official, user=NOBODY)
    tasks = {split: env.tasks(split) for split in env.splits}
    assert len(tasks["test"]) == test and len(tasks["train"]) + len(tasks["validation"]) == train
    listed = [task for several in tasks.values() for task in several]
    assert len({task.id.split("/")[1] for task in listed}) == train + test
    assert {task.content for task in tasks["test"]}.isdisjoint(task.content for task in listed[: -len(tasks["test"])])
    for task in listed:
        assert env.reset(seed=0, options={"task": task})[0]


def test_the_expert_solves_every_official_rule(official) -> None:
    env = Function(data=official)
    counts = []
    for split in env.splits:
        counts.append(len(env.tasks(split)))
        for task in env.tasks(split):
            env.reset(seed=0, options={"task": task})
            assert env.step(env.expert())[4]["success"], task.id
    assert counts[2] == 78 and sum(counts[:2]) == 460
