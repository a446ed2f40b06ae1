"""Rows of Household as a learner gets them, played beforehand and carried along as a small file.

Sixteen episodes of 50 turns in the recipe's setting: two groups of eight, which is a minibatch. Replies are random
words, of as many tokens as in the kit's other figures.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu_kit import random_models
from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.learn.passes.samples import Sample, samples_of
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.rollout_collection import play_groups

RECIPE = "household-gigpo-qwen2.5-1.5b"
REPLY = 100.0  # mean tokens, were there no limit
TOY: dict[str, Any] = {
    "env": {"args": {"difficulty": "tiny", "max_turns": 3}},
    "model": {"name": "gpu-shape", "shape": "toy", "reply": 6.0},
    "rollout": {"tasks": 2, "group": 2, "max_turns": 3},
    "sampling": {"max_tokens": 8},
    "learner": {"minibatch": 4, "micro_tokens": 4096},
}
_COLUMNS = ("ids", "reply_mask", "engine_logprob", "reply")


def household(device: str, toy: bool, more: Mapping[str, Any] | None = None) -> RunConfig:
    """The recipe as it stands, with random weights in the model's shape."""
    random_models.register()
    recipe = load_recipe(RECIPE)
    recipe["model"] = {"name": "gpu-shape", "shape": "qwen2.5-1.5b", "reply": REPLY}
    recipe = overlay(recipe, {"device": device, **(TOY if toy else {})})
    return parse_config(overlay(recipe, more or {}))


def file_of(carried: Path, toy: bool) -> Path:
    """File of the rows."""
    return carried / ("rows-toy.npz" if toy else "rows.npz")


def write(carried: Path, toy: bool) -> Path:
    """Play the episodes on the CPU and keep their rows; returns the file."""
    small = {} if toy else {"model": {"shape": "toy-words"}, "rollout": {"tasks": 2}}
    samples = asyncio.run(_played(household("cpu", toy, small)))
    columns = {name: np.concatenate([getattr(sample, name) for sample in samples]) for name in _COLUMNS}
    kinds = {"ids": np.int32, "reply_mask": bool, "engine_logprob": np.float16, "reply": np.int16}
    path = file_of(carried, toy)
    carried.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        length=np.array([len(sample) for sample in samples], np.int32),
        episode=np.array([sample.episode for sample in samples], np.int32),
        turns=np.array([sample.turns for sample in samples], np.int32),
        **{name: values.astype(kinds[name]) for name, values in columns.items()},
    )
    return path


async def _played(config: RunConfig) -> list[Sample]:
    async with open_run(config) as run:
        with tempfile.TemporaryDirectory() as place, RunFolder(Path(place) / "run", resume=False) as folder:
            folder.write_config(run.config)
            rollout = run.config.rollout
            plan = plan_groups(list(run.train[: rollout.tasks]), rollout.group, run.config.seed, "train/1")
            async with run.drawing():
                return samples_of(await play_groups(run, plan, folder, 1))


def load(carried: Path, toy: bool) -> list[Sample]:
    """The rows. Raises FileNotFoundError if there are none."""
    path = file_of(carried, toy)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: run python benchmarks/gpu.py pack, and carry its folder along")
    with np.load(path, allow_pickle=False) as file:
        columns = dict(file)
    ends = np.cumsum(columns["length"])[:-1]
    rows = zip(*(np.split(columns[name], ends) for name in _COLUMNS), strict=True)
    about = zip(columns["episode"].tolist(), rows, columns["turns"].tolist(), strict=True)
    return [
        Sample(episode, ids.astype(np.int64), mask, logprob.astype(np.float64), reply.astype(np.int64), turns)
        for episode, (ids, mask, logprob, reply), turns in about
    ]
