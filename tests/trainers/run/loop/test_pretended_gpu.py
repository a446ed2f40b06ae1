"""Tensors that a GPU would not find on itself: a step of a run on a device that is not there, and is as strict."""

import asyncio
import math

import pytest
import torch
from pretended_gpu import pretended
from pretended_steps import SMALL, steps

from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import parse_config

pytestmark = pytest.mark.versions

slow = pytest.mark.slow


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
    with pretended() as events:
        told = asyncio.run(steps(config, tmp_path / "run", 2))
    assert "attention in one call" in events, "runs of a tree attend one by one, which launches ten times as much"
    assert "replay" in events, "passes that only draw are launched operation by operation"
    assert len(told) == 2 and all(math.isfinite(line["grad_norm"]) for line in told)
    assert not any(line["out_of_memory"] for line in told)


def test_what_was_left_on_the_cpu_is_found():
    with pretended() as events:
        there = torch.ones(2, device="cuda")
        assert there.device.type == "cuda" and (there * 2).tolist() == [2.0, 2.0] and events == ["tolist"]
        with pytest.raises(RuntimeError, match="on the same device: add got one of shape"):
            there + torch.ones(2)
