"""Every method's recipe learns, stacked on a run as the command line stacks it.

All begin with the same warmed-up policy and are measured on the same held-out tasks. Success must rise above what it
was before, by more than rewards of pure noise do, and must not end far below what GRPO's recipe reaches. Recipes differ
in KL, clipping and size, so this says nothing about a method's worth. ``test_learning_credit.py`` compares methods with
their base under equal settings, ``test_no_inert_method.py`` takes each stage away, and ``docs/comparison.md`` has what
a method adds: more than its base is not shown at this size.
"""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from learning import LOST, ahead
from two_steps import ROUNDING, Trained, apart

from manyturn.recipes import load_recipe, methods
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure, to_toml
from manyturn.trainers.record.checkpoint import ONE_POLICY, newest_checkpoint, read_state, save_checkpoint
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.code_signature import sign
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run

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
WORLDS = {"c-grpo": "Rubric"}
ELSEWHERE = {"stratified-search", "rlcr"}  # this world has no tools, and its replies state no confidence
GAIN = 0.05  # success, which the lower end of the interval of a recipe's gain is above
# One update a step is slower; the horizon has to grow, which it does behind the 20th step; and some learn sooner.
STEPS = {
    "rloo": 16,
    "opo": 16,
    "w-reinforce": 16,
    **dict.fromkeys(("turn-dpo", "step-dpo", "copg", "agent-q", "agent-q-tree", "pav"), 16),
    "riskpo": 16,
    "scaling-inter": 21,
    "gigpo-spa-epo-gra": 8,
    "spa": 18,
    "igpo": 6,
}


# Most of their advantages are below 0, so that several updates of a few episodes push away whatever these said. And a
# bundle of five of the 16 tasks blames successes too often.
ONE_UPDATE: dict[str, Any] = {"learner": {"minibatch": 128}}
OPTIONS: dict[str, dict[str, Any]] = {
    "w-reinforce": ONE_UPDATE,
    "riskpo": {**ONE_UPDATE, "credit": {"advantage": {"bundle": 1}}},
}


def of_recipe(name: str, world: str = "Floors") -> RunConfig:
    """The method's run in this world, or in another one of its file."""
    env = {"id": f"{Path(__file__).with_name('floors.py')}:{world}"}
    changes = {"env": env, "steps": STEPS.get(name, FLOORS["steps"])}
    return configure(stacked([FLOORS, load_recipe(name)]), OPTIONS.get(name, {}), changes)


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
            folder / "checkpoints", 0, {ONE_POLICY: (run.only.language.save, run.only.learner.tensors())}, plain, keep=1
        )
    shutil.copy(source / "metrics.jsonl", folder)
    (folder / "config.toml").write_text(to_toml(config))
    sign(folder, config)  # the world is a file, and a folder that is not signed starts no code


@pytest.fixture(scope="session")
def warmed(tmp_path_factory):
    """The folder of a run that ended with its warm-up."""
    folder = tmp_path_factory.mktemp("warmed") / "run"
    summary = asyncio.run(train(configure(FLOORS, {"steps": 0}), folder))
    assert 0.1 < summary["before"]["success"] < 0.5, "there must be something left to learn"
    return folder


@pytest.fixture(scope="session")
def base(warmed, tmp_path_factory):
    """The folder of a run of GRPO's recipe."""
    return learnt(of_recipe("grpo"), warmed, tmp_path_factory.mktemp("grpo") / "run")


def learnt(config: RunConfig, warmed: Path, folder: Path, accept: tuple[str, ...] = ()) -> Path:
    """The folder of a run from the warmed-up policy to its end."""
    asyncio.run(plant(config, warmed, folder))
    asyncio.run(train(None, folder, resume=True, accept=accept))
    return folder


def gain(run: Path) -> dict[str, float]:
    """How far held-out success is above what it was before, and the ends of its interval over tasks."""
    return json.loads((run / "summary.json").read_text())["difference"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*methods()} - ELSEWHERE))
def test_the_recipe_gains_on_the_policy_before_it_and_keeps_up_with_grpos(name, warmed, base, tmp_path):
    config = of_recipe(name, WORLDS.get(name, "Floors"))
    run = base if name == "grpo" else learnt(config, warmed, tmp_path / "run", ("env",) if name in WORLDS else ())
    assert gain(run)["ci_low"] > GAIN, gain(run)
    if run != base:
        if name not in WORLDS:  # another environment is not compared
            assert ahead(run, base).mean > -LOST, (gain(run), gain(base))
        ours, theirs = (Trained.of(one, steps, []) for one, steps in ((run, config.steps), (base, FLOORS["steps"])))
        assert apart(ours, theirs) > ROUNDING, "it is GRPO by another name"


@pytest.mark.slow
def test_rewards_of_noise_do_not_pass_for_learning(warmed, tmp_path):
    """The same run, in which what a turn earns has nothing to do with what was said."""
    run = learnt(of_recipe("grpo", "Noise"), warmed, tmp_path / "run")
    assert gain(run)["success"] < GAIN / 2, gain(run)
    steps = [line for line in read_metrics(run) if line["phase"] == "train"]
    assert all(line["groups_without_signal"] < 0.5 and line["grad_norm"] > 0 for line in steps), "noise moves it too"
