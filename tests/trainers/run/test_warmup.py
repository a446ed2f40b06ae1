"""A warm-up with nothing to imitate is not passed over in silence: reinforcement would begin from noise."""

import asyncio

import pytest
from short_runs import short_run

from manyturn.envs.contract.options import ConfigError
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop import train

HOPELESS = """
import manyturn as mt

class Hopeless(mt.TextEnv):
    max_turns = 2

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(8)]

    def begin(self, task, rng):
        return "Say the word."

    def respond(self, action):
        return self.go_on("No.")

    def admissible(self):
        return ["tea", "milk"]
"""
NO_WARMUP = {"episodes": 0}
SHORT_MAZE = {"id": "manyturn/Maze-v0", "args": {"max_turns": 1}}


def test_an_expert_that_never_arrives_is_told_with_its_mends(tmp_path):
    told = r"none of the 24 demonstrations by the expert with warmup\.noise = 0\.3 .*lower warmup\.noise"
    with pytest.raises(ConfigError, match=told) as refusal:
        asyncio.run(train(short_run(env=SHORT_MAZE), tmp_path / "run"))
    assert "\n" not in str(refusal.value) and "set warmup.episodes = 0" in str(refusal.value)
    asyncio.run(train(short_run(env=SHORT_MAZE, warmup=NO_WARMUP, steps=1), tmp_path / "mended"))
    assert [line["step"] for line in read_metrics(tmp_path / "mended") if line["phase"] == "train"] == [1]


def test_chance_that_never_arrives_asks_for_an_expert(tmp_path):
    (tmp_path / "hopeless.py").write_text(HOPELESS)
    env = {"id": f"{tmp_path / 'hopeless.py'}:Hopeless"}
    with pytest.raises(ConfigError, match=r"none of the 8 .* by a random policy .* give the environment an expert\(\)"):
        asyncio.run(train(short_run(env=env), tmp_path / "run"))
