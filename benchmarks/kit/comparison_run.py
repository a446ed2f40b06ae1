"""Cells of a comparison: runs that begin with one shared warm-up, and the stored line of each.

The warm-up of a world and a seed is run once, and planted into each run as the checkpoint that its own warm-up would
have written. So all runs of the seed begin with the same weights.
"""

import asyncio
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kit.provenance import commit, machine
from manyturn.agents.evaluation.paired_comparison import read_evaluation, values_over
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.trainers.recipe.config import RunConfig, configure, to_toml
from manyturn.trainers.record.checkpoint import ONE_POLICY, newest_checkpoint, read_state, save_checkpoint
from manyturn.trainers.record.run_folder import read_config
from manyturn.trainers.run.loop.code_signature import sign
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run

Line = dict[str, Any]
"""Plain values of a finished cell."""


class Start(NamedTuple):
    """The warm-up that cells share: its configuration and its folder."""

    config: RunConfig
    folder: Path


async def finish(config: RunConfig, folder: Path) -> None:
    """Run or resume the run in a folder, unless it is finished; ``made.json`` says where and when.

    Raises:
        SystemExit: the folder has a run of another configuration.
    """
    begun = (folder / "config.toml").is_file()
    if begun and read_config(folder) != config:
        raise SystemExit(f"{folder} holds a run of another configuration: name another RUN-FOLDER, or remove it")
    if not (folder / "summary.json").is_file():
        await train(None if begun else config, folder, resume=begun)
    if not (folder / "made.json").is_file():
        made = {"commit": commit(), "machine": machine(), "date": datetime.now(UTC).strftime("%Y-%m-%d")}
        replace_text(folder / "made.json", json.dumps(made) + "\n")


async def plant(config: RunConfig, source: Path, folder: Path) -> None:
    """Put the end of another run's warm-up into a new run's folder; heads and reference start fresh.

    Raises:
        SystemExit: the source has no intact checkpoint.
    """
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
    sign(folder, config)  # the world is a file, and a folder that is not signed starts no code
    replace_text(folder / "config.toml", to_toml(config))  # last: with it the run has begun


def run_cell(start: Start, config: RunConfig, root: Path, figures: Callable[[Path], Mapping[str, Any]]) -> Line:
    """Run a cell from its warm-up in a folder that is removed afterwards; its figures and ``cpu_seconds``.

    Args:
        start: the warm-up, which must be finished.
        root: where the folder of the run is made.
        figures: reads the line's figures from the finished run's folder.
    """

    async def planted(folder: Path) -> None:
        await plant(config, start.folder, folder)
        await train(None, folder, resume=True)

    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="cell-", dir=root) as parent:
        folder = Path(parent) / "run"
        asyncio.run(planted(folder))
        line = dict(figures(folder))
    return {**line, "cpu_seconds": round(time.process_time() - began, 1)}


def stored_line(file: Path, make: Callable[[], Line]) -> Line:
    """The line in a file, which is made and stored if the file is missing."""
    if file.is_file():
        return json.loads(file.read_text())
    file.parent.mkdir(parents=True, exist_ok=True)
    line = make()
    unfinished = file.with_suffix(".writing")
    unfinished.write_text(json.dumps(line) + "\n")
    os.replace(unfinished, file)
    return line


def held_out(folder: Path) -> dict[str, Any]:
    """Held-out successes of a finished run; ``successes`` has a digit per task of the panel: its successful episodes.

    Raises:
        SystemExit: an episode of the evaluation ended in an error.
    """
    evaluation = read_evaluation(folder)
    panel, repeats = evaluation.panel, evaluation.summary["repeats"]
    scores = values_over(evaluation.rows, "success", dict(zip(panel.contents, panel.tasks, strict=True)))
    if any(len(scores.get(task, ())) != repeats for task in panel.tasks):
        raise SystemExit(f"{folder}: episodes of the evaluation ended in errors: run the same command again")
    digits = "".join(str(int(sum(scores[task]))) for task in panel.tasks)
    return {"panel": panel.hash, "repeats": repeats, "successes": digits}


def config_changes(config: RunConfig) -> dict[str, Any]:
    """The entries of a configuration that differ from its environment's defaults, without this machine's folders."""
    values = changes(config.model_dump(mode="json"), configure({"env": {"id": config.env.id}}).model_dump(mode="json"))
    values["env"] = {**values.get("env", {}), "id": portable_name(config.env.id)}
    return values


def changes(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The entries that differ from the defaults; a part's name stays with its options.

    >>> changes({"kl": {"name": "k2", "coef": 0.1}, "steps": 5}, {"kl": {"name": "k2", "coef": 0.0}, "steps": 5})
    {'kl': {'name': 'k2', 'coef': 0.1}}
    """
    differing = {}
    for name, value in values.items():
        default = defaults.get(name)
        if isinstance(value, dict) and isinstance(default, dict) and value.get("name") == default.get("name"):
            value = changes(value, default)
            if value.keys() - {"name"}:
                differing[name] = value
        elif value != default or name == "name":
            differing[name] = value
    return differing
