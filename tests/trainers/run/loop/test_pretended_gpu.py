"""Tensors that a GPU would not find on itself: a step of a run on a device that is not there, and is as strict."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from pretended_gpu import pretended

from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.step import train_step

pytestmark = pytest.mark.versions

SMALL: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 3}},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 2},
    "sampling": {"max_tokens": 4},
    "rollout": {"tasks": 2, "group": 2, "cut_share": 1.0},
    "learner": {"engine_alarm": "note"},
    "device": "cuda",
    "steps": 3,
}
slow = pytest.mark.slow


async def steps(config: RunConfig, folder: Path, count: int) -> list[dict[str, Any]]:
    """The metrics of the first steps, without warm-up, exploration and checkpoints."""
    async with open_run(config) as run:
        with RunFolder(folder, resume=False) as written:
            written.write_config(run.config)
            state = State()
            for trainee in run.trainees:
                assert trainee.learner.model.device.type == "cuda"
                trainee.learner.begin_reinforcement()
            return [await train_step(run, state, written) for _ in range(count)]


@pytest.mark.parametrize(
    ("recipe", "more"),
    [
        ("gigpo", {"objective": {"kl": {"coef": 0.01}}}),
        pytest.param("gigpo", {"learner": {"lora_rank": 2, "gradient_checkpointing": True}}, marks=slow),
        pytest.param("ppo", {}, marks=slow),
        pytest.param("epo", {}, marks=slow),
        pytest.param("spa-alongside", {}, marks=slow),
        pytest.param("gspo", {}, marks=slow),
        pytest.param("empg", {}, marks=slow),
        pytest.param("arpo", {"rollout": {"group": 4, "branching": {"initial": 2}}}, marks=slow),
        pytest.param("spo", {}, marks=slow),
        pytest.param("tis", {}, marks=slow),
    ],
)
def test_a_step_finds_all_its_tensors_on_one_device(recipe, more, tmp_path):
    config = parse_config(overlay(overlay(load_recipe(recipe), SMALL), more))
    with pretended():
        told = asyncio.run(steps(config, tmp_path / "run", 2))
    assert len(told) == 2 and all(math.isfinite(line["grad_norm"]) for line in told)
    assert not any(line["out_of_memory"] for line in told)


def test_what_was_left_on_the_cpu_is_found():
    with pretended() as events:
        there = torch.ones(2, device="cuda")
        assert there.device.type == "cuda" and (there * 2).tolist() == [2.0, 2.0] and events == ["tolist"]
        with pytest.raises(RuntimeError, match="on the same device: add got one of shape"):
            there + torch.ones(2)
