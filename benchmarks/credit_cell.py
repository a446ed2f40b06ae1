"""One run of the comparison of recipes; ``credit.py`` starts it in a process of its own.

A run that is finished is left alone, one that was begun goes on. Methods of one world and seed begin with the same
warmed-up weights: the warm-up is run once, and planted into each run as the checkpoint that its own would have written.
"""

import asyncio
import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from credit_plan import Cell, config_of, shares_warmup, warmup_of
from provenance import commit, machine

from manyturn.envs.contract.durable import replace_text
from manyturn.trainers.recipe.config import RunConfig, to_toml
from manyturn.trainers.record.checkpoint import ONE_POLICY, newest_checkpoint, read_state, save_checkpoint
from manyturn.trainers.record.run_folder import read_config
from manyturn.trainers.record.stop_signal import Stopped
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run import open_run

WARMUP = "warmup"


async def run_cell(root: Path, cell: Cell, steps: int | None = None) -> None:
    """Bring a cell to its end."""
    config, folder = config_of(cell, steps), root / cell.folder
    warmup, source = warmup_of(cell), root / cell._replace(method=WARMUP).folder
    if shares_warmup(config, warmup) and not (folder / "config.toml").is_file():
        await finish(warmup, source)
        await plant(config, source, folder)
    await finish(config, folder)


async def finish(config: RunConfig, folder: Path) -> None:
    """Run or continue the run in a folder, unless it is finished."""
    begun = (folder / "config.toml").is_file()
    if begun and read_config(folder) != config:
        raise SystemExit(f"{folder} holds a run of another configuration: name another RUN-FOLDER, or remove it")
    if not (folder / "summary.json").is_file():
        await train(None if begun else config, folder, resume=begun)
    if not (folder / "made.json").is_file():
        made = {"commit": commit(), "machine": machine(), "date": datetime.now(UTC).strftime("%Y-%m-%d")}
        replace_text(folder / "made.json", json.dumps(made) + "\n")


async def plant(config: RunConfig, source: Path, folder: Path) -> None:
    """Give a run that has not begun the end of another's warm-up; its heads and reference are as new."""
    checkpoint, problems = newest_checkpoint(source / "checkpoints")
    if checkpoint is None:
        raise SystemExit(f"{source} has no whole checkpoint ({'; '.join(problems)}): remove the folder")
    async with open_run(config) as run:
        state = read_state(checkpoint)
        run.only.learner.load_plain({**run.only.learner.plain(), "updates": state["learner"]["updates"]})
        run.only.language.load_weights(checkpoint / "model")
        run.only.learner.begin_reinforcement()
        plain = {**state, "config": config.model_dump(mode="json"), "learner": run.only.learner.plain()}
        folder.mkdir(parents=True, exist_ok=True)
        save_checkpoint(
            folder / "checkpoints", 0, {ONE_POLICY: (run.only.language.save, run.only.learner.tensors())}, plain, keep=1
        )
    shutil.copy(source / "metrics.jsonl", folder / "metrics.jsonl")
    replace_text(folder / "config.toml", to_toml(config))  # last: with it the run has begun


def in_child(root: Path, cell: Cell, steps: int | None, log: Path) -> None:
    """Bring a cell to its end in this process, which is for nothing else; what it says goes to ``log``."""
    with log.open("a") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    try:
        asyncio.run(run_cell(root, cell, steps))
    except Stopped as stopped:
        sys.exit(stopped.exit_code)
