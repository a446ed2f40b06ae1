"""One run of the comparison of credit methods, and the line that is kept of it.

The warm-up of a world and a seed is run once, in a folder named by commit, world and seed, and planted into every row
as the checkpoint that its own would have written. The run's folder is gone when its line is stored.
"""

import asyncio
import fcntl
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from credit import told_of
from credit_cell import plant
from credit_methods_lines import Line
from credit_methods_plan import Cell, config_of, hypotheses_hash, plan_hash, warmup_of
from provenance import commit, machine

from manyturn.agents.evaluation.paired_comparison import read_evaluation, values_over
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.checkpoint import newest_checkpoint
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train


def run_cell(root: Path, cell: Cell, tiny: bool = False) -> Line:
    """Run a cell from the shared warm-up; its line.

    ``training`` is the success of each step's episodes. ``successes`` has a digit for each task of the panel, in its
    order: how many of its ``repeats`` episodes succeeded. ``weights`` is the hash of the final weights. ``cpu_seconds``
    are those of this cell, ``warmup_seconds`` those of the warm-up, if it was made for this cell.
    """
    config, began = config_of(cell, tiny), time.process_time()
    source = _warmed_up(root, cell, tiny)
    warmed = time.process_time()
    with tempfile.TemporaryDirectory(prefix="cell-", dir=root) as aside:
        folder = Path(aside) / "run"
        asyncio.run(_run(config, source, folder))
        return {
            "command": "python benchmarks/credit_methods.py RUN-FOLDER",
            "commit": commit(),
            "machine": machine(),
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "hypotheses": hypotheses_hash(),
            "plan": plan_hash(),
            **cell._asdict(),
            "config": told_of(config),
            **_found(folder),
            "warmup_seconds": round(warmed - began, 1),
            "cpu_seconds": round(time.process_time() - warmed, 1),
        }


def _warmed_up(root: Path, cell: Cell, tiny: bool) -> Path:
    """The folder of the warm-up that this cell begins with, which is made if it is not there."""
    folder = root / commit() / cell.world / f"seed-{cell.seed}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):
        if not (folder / "summary.json").is_file():
            begun = (folder / "config.toml").is_file()
            asyncio.run(train(None if begun else warmup_of(cell, tiny), folder, resume=begun))
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """While no other process is here."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


async def _run(config: RunConfig, source: Path, folder: Path) -> None:
    await plant(config, source, folder)
    await train(None, folder, resume=True)


def _found(folder: Path) -> Mapping[str, Any]:
    summary = json.loads((folder / "summary.json").read_text())
    evaluation = read_evaluation(folder)
    panel = evaluation.panel
    scores = values_over(evaluation.rows, "success", dict(zip(panel.contents, panel.tasks, strict=True)))
    repeats = evaluation.summary["repeats"]
    if any(len(scores.get(task, ())) != repeats for task in panel.tasks):
        raise SystemExit(f"{folder}: episodes of the evaluation ended in errors: run the same command again")
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    return {
        "panel": panel.hash,
        "repeats": repeats,
        "successes": "".join(str(int(sum(scores[task]))) for task in panel.tasks),
        **{name: summary[name]["success"] for name in ("before", "after")},
        "training": [round(line["success"], 4) for line in steps],
        "trained_tokens": sum(line["trained_tokens"] for line in steps),
        "updates": summary["updates"],
        "weights": _weights(folder),
    }


def _weights(folder: Path) -> str:
    """Hash of the final weights."""
    checkpoint, problems = newest_checkpoint(folder / "checkpoints")
    if checkpoint is None:
        raise SystemExit(f"{folder} has no whole checkpoint ({'; '.join(problems)}): run the same command again")
    files = json.loads((checkpoint / "manifest.json").read_text())["files"]
    [found] = [facts["sha256"] for name, facts in files.items() if name.startswith("model/") and "safetensors" in name]
    return found[:16]
