"""A confidence that is not read where it stands, or is learnt to be stated and not to be true."""

import asyncio
from pathlib import Path

import pytest

from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

WORLD = {
    "env": {"id": f"{Path(__file__).parents[2] / 'forecasts.py'}:Forecasts"},
    "agent": {"format": "tagged"},
    "model": {"name": "tiny", "width": 32, "layers": 1, "heads": 2},
    "warmup": {"episodes": 100, "noise": 0.0, "max_updates": 60, "check_every": 60, "must_succeed": False},
    "rollout": {"tasks": 12, "group": 8},
    "credit": {"advantage": {"name": "grpo", "std": False}},
    "columns": [{"name": "confidence", "tag": "action"}],
    "learner": {"lr": 5e-3, "minibatch": 96},
    "sampling": {"max_tokens": 12},
    "evaluation": {"limit": 1},
    "steps": 10,
    "checkpoint_every": 100,
    "device": "cpu",
}


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.1, 0.9])
def test_a_policy_learns_to_say_how_likely_it_wins(chance, tmp_path):
    config = configure(stacked([WORLD, {"env": {"args": {"chance": chance}}}, load_recipe("rlcr")]))
    asyncio.run(train(config, tmp_path / "run"))
    lines = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert all(line["stated"] > 0.7 for line in lines[-3:])
    first, last = (sum(line["brier"] for line in some) / 3 for some in (lines[:3], lines[-3:]))
    assert last < first - 0.1, (first, last)  # the truth costs 0.09 in the mean, a coin 0.41
