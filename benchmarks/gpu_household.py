"""Seconds for a step of GiGPO on Household in its authors' setting: 128 episodes of up to 50 turns, a model of 1.5B.

The recipe household-gigpo-qwen2.5-1.5b as it stands, with random weights in the model's shape. Nothing that they say
means anything to the environment, so every episode has all 50 turns: the longest step there can be. Replies end at
random after 100 tokens in the mean, and at 512 at the latest; each word of the environment is one token. The row has
the turns and tokens that came of it.

Two items: the episodes, and what is learnt from them. Their sum is a step. For comparison: 288 s on two H100 is what
verl-agent's authors name for ALFWorld with Qwen2.5-1.5B (150 steps in 12 hours; langfengQ/verl-agent, issue 122), with
a trained model that ends many episodes early.
"""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gpu_shapes
import numpy as np
from gpu_device import Device
from gpu_items import Figures, Item, Kit

from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.layers import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.play.rollout.rollouts import plan_groups
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.run.setup.run import Run, open_run
from manyturn.trainers.run.step.policy_update import policy_updates
from manyturn.trainers.run.step.step_episodes import play_groups

_RECIPE = "household-gigpo-qwen2.5-1.5b"
_MODEL = {"name": "gpu-shape", "shape": "qwen2.5-1.5b", "reply": 100.0}
_TOY = {
    "env": {"args": {"difficulty": "tiny", "max_turns": 3}},
    "model": {"name": "gpu-shape", "shape": "toy", "reply": 6.0},
    "rollout": {"tasks": 2, "group": 2, "max_turns": 3},
    "sampling": {"max_tokens": 8},
    "learner": {"minibatch": 4, "micro_tokens": 4096},
}


@dataclass(frozen=True)
class Step:
    """Where the episodes of a step are, and the run that plays and learns from them."""

    device: Device
    config: RunConfig
    folder: Path


def items(kit: Kit) -> list[Item]:
    gpu_shapes.register()
    recipe = load_recipe(_RECIPE)
    recipe["model"] = _MODEL
    recipe = overlay(recipe, {"device": kit.device.torch.type, **(_TOY if kit.toy else {})})
    step = Step(kit.device, parse_config(recipe), kit.work / "household")
    return [Item("episodes", 330, partial(played, step)), Item("what is learnt from them", 300, partial(learnt, step))]


def played(step: Step) -> Figures:
    """Play the step's episodes; they stay in the folder for the other item."""
    shutil.rmtree(step.folder, ignore_errors=True)
    return asyncio.run(_play(step))


async def _play(step: Step) -> Figures:
    async with open_run(step.config) as run:
        with RunFolder(step.folder, resume=False) as folder:
            folder.write_config(run.config)
            await run.only.publish()
            step.device.forget_peak()
            with step.device.timed() as took:
                async with run.drawing():
                    episodes = await _episodes(run, folder)
        peak, engine = step.device.peak(), run.only.engine.figures()
    turns = [turn for episode in episodes for turn in episode.turns]
    said = sum(int(np.sum(branch.said)) for episode in episodes for branch in episode.ledger.branches)
    return {
        "seconds_of_episodes": took[0],
        "episodes": len(episodes),
        "turns": len(turns),
        "drawn_tokens": said,
        "drawn_tokens_per_s": said / took[0],
        "peak_gb": peak / 1e9,
        "out_of_memory": engine["out_of_memory"],
    }


async def _episodes(run: Run, folder: RunFolder) -> Sequence[Episode]:
    rollout = run.config.rollout
    tasks = list(run.train[: rollout.tasks])
    return await play_groups(run, plan_groups(tasks, rollout.group, run.config.seed, "train/1"), folder, 1)


def learnt(step: Step) -> Figures:
    """Learn from the episodes that were played."""
    if not step.folder.is_dir():
        return {"error": f"{step.folder} has no episodes: measure the item before on this machine first"}
    return asyncio.run(_learn(step))


async def _learn(step: Step) -> Figures:
    async with open_run(step.config) as run:
        with RunFolder(step.folder, resume=True) as folder:
            episodes = await _episodes(run, folder)  # from its journal
        trainee = run.only
        trainee.learner.begin_reinforcement()
        await trainee.engine.sleep()
        step.device.forget_peak()
        with step.device.timed() as took:
            figures: dict[str, Any] = {}
            tokens = 0
            for update in policy_updates(run, episodes, [True] * len(episodes), {}):
                figures, tokens = update.learn(run, 1)
        return {
            "seconds_of_learning": took[0],
            "trained_tokens": tokens,
            "trained_tokens_per_s": tokens / took[0],
            "updates": trainee.learner.updates,
            "peak_gb": step.device.peak() / 1e9,
            "engine_kl": figures["engine_kl"],
            "engine_ratio_p99": figures["engine_ratio_p99"],
        }
