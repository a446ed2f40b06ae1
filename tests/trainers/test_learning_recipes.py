"""Every method learns as its recipe has it, stacked on a run as the command line stacks it.

All begin with the same warmed-up policy, so that what differs is the method.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from manyturn.recipes import load_recipe, methods
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure, to_toml
from manyturn.trainers.record.checkpoint import ONE_POLICY, newest_checkpoint, read_state, save_checkpoint
from manyturn.trainers.run.loop import train
from manyturn.trainers.run.run import open_run

FLOORS: dict[str, Any] = {
    "env": {"id": f"{Path(__file__).with_name('floors.py')}:Floors"},
    "model": {"name": "tiny", "width": 32, "layers": 2, "heads": 2},
    "warmup": {"episodes": 1000, "noise": 0.7, "until_success": 0.3, "check_every": 25, "check_episodes": 100},
    "rollout": {"tasks": 16, "group": 8},
    "learner": {"lr": 2e-3},
    "evaluation": {"limit": 100, "repeats": 2},
    "steps": 12,
    "checkpoint_every": 100,
    "device": "cpu",
}
# One update a step is slower; the horizon has to grow, which it does behind the 20th step; and some learn sooner.
STEPS = {"rloo": 16, "opo": 16, "scaling-inter": 21, "gigpo-spa-epo-gra": 8, "spa": 18}


def of_recipe(name: str) -> RunConfig:
    """The method's run in this world."""
    return configure(stacked([FLOORS, load_recipe(name)]), {"steps": STEPS.get(name, FLOORS["steps"])})


async def plant(config: RunConfig, source: Path, folder: Path) -> None:
    """Begin a run with the warmed-up weights and figures of another; its heads and its reference are as new."""
    checkpoint, _ = newest_checkpoint(source / "checkpoints")
    assert checkpoint is not None
    async with open_run(config) as run:
        state = read_state(checkpoint)
        run.only.language.load_weights(checkpoint / "model")
        run.only.learner.begin_reinforcement()
        plain = {
            **state,
            "config": config.model_dump(mode="json"),
            "learner": {**run.only.learner.plain(), "updates": state["learner"]["updates"]},
        }
        folder.mkdir()
        save_checkpoint(
            folder / "checkpoints", 0, {ONE_POLICY: (run.only.language, run.only.learner.tensors())}, plain, keep=1
        )
    shutil.copy(source / "metrics.jsonl", folder)
    (folder / "config.toml").write_text(to_toml(config))


@pytest.fixture(scope="session")
def warmed(tmp_path_factory):
    """The folder of a run that ended with its warm-up."""
    folder = tmp_path_factory.mktemp("warmed") / "run"
    asyncio.run(train(configure(FLOORS, {"steps": 0}), folder))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in methods() if name != "stratified-search"])  # this world has no tools
def test_the_recipe_learns(name, warmed, tmp_path):
    folder = tmp_path / "run"
    asyncio.run(plant(of_recipe(name), warmed, folder))
    summary = asyncio.run(train(None, folder, resume=True))
    assert summary["before"]["success"] < 0.5, "there must be something left to learn"
    assert summary["difference"]["ci_low"] > 0.05, summary
