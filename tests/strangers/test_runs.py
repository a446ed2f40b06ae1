"""A run of one's own: a section as an argument, a line of several policies, the clock, and parts from a script."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import manyturn as mt
from manyturn.trainers.record.metrics import METRICS
from manyturn.trainers.record.run_folder import read_config
from manyturn.trainers.record.shown_metrics import CURVES, SHOWN

SIZES = """
steps = 1
device = "cpu"
[model]
width = 16
layers = 1
heads = 2
[agent]
max_context = 512
[sampling]
max_tokens = 8
[warmup]
episodes = 0
[rollout]
tasks = 4
group = 2
cut_share = 1
[evaluation]
limit = 2
"""
SCRIPT = """
from typing import Literal
import manyturn as mt
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, TurnReward

class EarlyConfig(Named):
    name: Literal["early"] = "early"

@WRAPPERS.register(EarlyConfig)
class Early(TurnReward):
    preserves_optimal_policy, part = False, "early"

    def __init__(self, env, config):
        super().__init__(env)

    def reward_parts(self, parts, ended, info):
        return self.add(parts, 0.5 if ended else 0.0)

if __name__ == "__main__":
    mt.train("manyturn/Maze-v0", recipe="small.toml", out="early", env={"wrappers": ["early"]})
"""


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SIZES)


def test_a_section_named_env_is_an_argument_beside_the_environment(doors):
    cost = {"name": "turn_cost", "cost": 0.25}
    run = mt.train(doors, recipe="small.toml", out="run", env={"wrappers": [cost]})
    [wrapper] = read_config(run.folder).env.wrappers
    assert wrapper.model_dump() == cost and read_config(run.folder).env.id == doors


def test_a_line_of_two_roles_says_what_the_policy_learns_and_the_clock_adds_up(command):
    words = ("--recipe", "small.toml", "--roles.buyer", "buyer", "--roles.seller", "expert", "--out", "run")
    ended = command("train", "manyturn/Talk-SelfPlay-v0", *words)
    assert ended.code == 0, ended.err
    [line] = [line for line in ended.out.splitlines() if line.startswith("step ")]
    figures = r"entropy \d.*kl [+-]\d.*no signal \d+%.*grad \d"
    assert re.search(f"success .*buyer: .*{figures}", line), line
    [clock] = re.findall(r"^(\d+) s: (.*?);", ended.out, re.MULTILINE)
    parts = re.findall(r"([a-z ]+) (\d+)", clock[1])
    assert [name.strip() for name, _ in parts] == ["loading", "playing", "learning", "evaluating and saving", "drawing"]
    assert abs(int(clock[0]) - sum(int(seconds) for _, seconds in parts)) <= 3, "each is rounded"


def test_what_is_shown_of_a_run_is_defined_once():
    keys = [shown.key for shown in SHOWN]
    assert len(set(keys)) == len(keys) and set(keys) <= METRICS.keys()
    assert {shown.curve for shown in SHOWN if shown.curve} == CURVES.keys()


def test_a_run_with_a_part_of_a_script_names_the_script_when_it_is_resumed(command):
    Path("early.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "early.py"], check=True, capture_output=True)
    ended = command("train", "--resume", "early", "--steps", 2)
    assert ended.code == 2 and ended.err.count("\n") == 1
    assert "'early'" in ended.err and "early.py" in ended.err and "docs/plugins.md" in ended.err, ended.err
