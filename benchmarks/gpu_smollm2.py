"""A real model learns on a GPU: SmolLM2-135M-Instruct on Household's first level, before and after, on a pinned panel.

The recipe household-smollm2-lora with fewer updates and steps, so that a part ends in its time: a warm-up on expert
demonstrations, then GRPO with adapters. The same 200 held-out tasks are played before and after; the row names the
panel. A run that comes to its limit goes on with the next call.
"""

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from gpu_items import Figures, Item, Kit
from gpu_shapes import random_language

from manyturn.agents.model.gguf import converted
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.vocabulary import texts_of
from manyturn.envs.contract.layers import overlay
from manyturn.envs.hosting.seats import open_seats
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

_RECIPE = "household-smollm2-lora"
_SHORTER: dict[str, Any] = {
    "steps": 12,
    "checkpoint_every": 2,
    "warmup": {"max_updates": 100, "must_succeed": False},
    "evaluation": {"limit": 200},
}
_TOY: dict[str, Any] = {
    "steps": 1,
    "rollout": {"tasks": 1, "group": 2, "max_turns": 2, "cut_share": 1.0},
    "sampling": {"max_tokens": 16},
    "learner": {"minibatch": 2, "micro_tokens": 4096, "lora_rank": 2},
    "evaluation": {"limit": 2},
}


def items(kit: Kit) -> list[Item]:
    return [Item("before and after", 480, partial(before_and_after, kit))]


def before_and_after(kit: Kit) -> Figures:
    """Held-out success of the warmed-up policy, and after reinforcement."""
    began, path = time.monotonic(), _model(kit)
    converting = time.monotonic() - began
    own = {"model": {"path": str(path)}, "device": kit.device.torch.type}
    recipe = overlay(overlay(load_recipe(_RECIPE), _SHORTER), own)
    if kit.toy:
        recipe = {**overlay(recipe, _TOY), "warmup": {"episodes": 0}}  # an expert cannot succeed in so few turns
    config = parse_config(recipe)
    folder = kit.work / "smollm2"
    resume = (folder / "config.toml").is_file()
    summary = asyncio.run(train(None if resume else config, folder, resume=resume))
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    return {
        **{f"{name}_{end}": summary[name][end] for name in ("before", "after", "difference") for end in _ENDS},
        "expert": summary["expert"]["success"],
        "random": summary["random"]["success"],
        "panel": summary["panel"]["hash"],
        "tasks": summary["panel"]["n_tasks"],
        "steps": len(steps),
        "seconds_of_a_step": sum(line["rollout_seconds"] + line["learn_seconds"] for line in steps) / len(steps),
        "engine_ratio_p99": max(line["engine_ratio_p99"] for line in steps),
        "seconds_of_conversion": converting,
    }


_ENDS = ("success", "ci_low", "ci_high")


def _model(kit: Kit) -> Path:
    """The folder of the model, converted if it is one file; a random one at toy size."""
    if kit.toy:
        return _toy_model(kit.work / "toy-model")
    if kit.model is None or not kit.model.exists():
        raise FileNotFoundError(f"--model {kit.model} is not there: see docs/gpu.md for SmolLM2's weights")
    return converted(kit.model.parent, kit.model.name) if kit.model.suffix == ".gguf" else kit.model


def _toy_model(folder: Path) -> Path:
    """A folder as a published model's, with random weights that know Household's words."""

    async def words() -> list[str]:
        async with open_seats("manyturn/Household-v0", {"difficulty": "tiny"}, limit=1) as seats:
            return await texts_of(seats, AgentConfig(), 2, 0)

    random_language("toy", torch.device("cpu"), asyncio.run(words()), reply=8).save(folder)
    return folder
