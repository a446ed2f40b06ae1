"""Arms that differ in more than method and rewards, sizes without tasks, and an interruption that costs all runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.credit.generalization import ARMS, PLAN, config_of, warmup_of
from manyturn.envs.adventure.treasure import Treasure
from manyturn.trainers.recipe.config_diff import changes

ROOT = Path(__file__).parents[3]
OWN = ("credit.advantage", "env.args", "value", "rollout.tasks", "rollout.group")


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_has_its_advantage_and_its_rewards_and_plays_as_many_episodes(arm):
    config, base, warmup = config_of(arm, 3), config_of("grpo sparse", 3), warmup_of(3)
    differing = changes(base.model_dump(mode="json"), config.model_dump(mode="json"))
    assert all(any(name.startswith(own) for own in OWN) for name in differing), differing
    assert config.rollout.tasks * config.rollout.group == PLAN["episodes"]
    for part in ("model", "agent", "sampling", "warmup", "seed"):
        assert getattr(config, part) == getattr(warmup, part), part
    assert {one[side] for one in PLAN["expected"] for side in ("arm", "against") if side in one} <= set(ARMS)


@pytest.mark.parametrize("size", PLAN["sizes"])
def test_hunts_of_each_size_exist_and_the_expert_fits_into_their_turns(size):
    env = Treasure("test", **PLAN["sizes"][size])
    for task in env.tasks("test")[:5]:
        env.reset(seed=0, options={"task": task})
        ended = truncated = False
        while not ended:
            *_, ended, truncated, info = env.step(env.expert())
            assert not truncated, task.id
        assert info["success"]


@pytest.mark.deep
def test_the_comparison_runs_and_goes_on(tmp_path):
    words = [sys.executable, "-m", "benchmarks.credit.generalization", str(tmp_path / "runs"), "--toy"]
    outputs = []
    for arms in (["ppo dense"], ["gigpo sparse", "ppo dense"]):
        command = [*words, "--out", str(tmp_path / "out.json"), "--arms", *arms]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr[-2000:]
        outputs.append(ended.stdout)
    assert "ppo dense, seed 0" in outputs[0] and "ppo dense, seed 0" not in outputs[1], "nothing runs twice"
    runs = json.loads((tmp_path / "out.json").read_text())["runs"]
    assert [run["arm"] for run in runs] == ["ppo dense", "gigpo sparse"]
    assert all(0 <= run[f"greedy {size}"] <= 1 for run in runs for size in (*PLAN["sizes"], "unseen"))
