"""One run of the comparison of credit methods, and its stored line.

The warm-up of a world and a seed is run once, in a folder named by commit, world and seed, and planted into every row
as the checkpoint that its own would have written. The run's folder is gone when its line is stored.
"""

import asyncio
import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.credit.methods.plan import Cell, config_of, hypotheses_hash, plan_hash, warmup_of
from benchmarks.credit.methods.result_store import Line
from benchmarks.kit.comparison_run import Start, config_changes, finish, held_out, run_cell
from benchmarks.kit.provenance import commit, machine
from manyturn.trainers.record.checkpoint import newest_checkpoint
from manyturn.trainers.record.run_folder import read_metrics


def line_of(root: Path, cell: Cell, *, tiny: bool = False) -> Line:
    """Run a cell from the shared warm-up; its line.

    ``training`` is the success of each step's episodes. ``successes`` has a digit per task of the panel, in its order:
    its successful episodes among ``repeats``. ``weights`` is the hash of the final weights. ``cpu_seconds`` are those
    of this cell, ``warmup_seconds`` those of the warm-up, if it was made for this cell.
    """
    config, began = config_of(cell, tiny=tiny), time.process_time()
    start = _warmed_up(root, cell, tiny=tiny)
    warmed = time.process_time()
    return {
        "command": "python -m benchmarks.credit.methods RUN-FOLDER",
        "commit": commit(),
        "machine": machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "hypotheses": hypotheses_hash(),
        "plan": plan_hash(),
        **cell._asdict(),
        "config": config_changes(config),
        **run_cell(start, config, root, _figures),
        "warmup_seconds": round(warmed - began, 1),
    }


def _warmed_up(root: Path, cell: Cell, *, tiny: bool) -> Start:
    """The warm-up of this cell, which is run if it is not finished."""
    start = Start(warmup_of(cell, tiny=tiny), root / commit() / cell.world / f"seed-{cell.seed}")
    start.folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(start.folder.with_suffix(".lock")):
        asyncio.run(finish(*start))
    return start


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out of this block."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _figures(folder: Path) -> Mapping[str, Any]:
    summary = json.loads((folder / "summary.json").read_text())
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    return {
        **held_out(folder),
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
        raise SystemExit(f"{folder} has no intact checkpoint ({'; '.join(problems)}): run the same command again")
    files = json.loads((checkpoint / "manifest.json").read_text())["files"]
    [file] = [facts for name, facts in files.items() if name.startswith("model/") and "safetensors" in name]
    return file["sha256"][:16]
