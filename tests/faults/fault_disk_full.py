"""The disk refuses to take more: the run ends with its own exit status, keeps what was saved, and can be continued.

The kernel's limit on file sizes stands in for a full disk: a write beyond it fails as one on a full disk does, in the
journal, the tables, the metrics or the checkpoint, whichever comes first.
"""

import asyncio
import resource
import sys
from pathlib import Path
from typing import Any

from short_runs import ended, episode_keys, figures, finish, left_behind, missing_and_double, short_run, start
from tally import Tally

from manyturn.agents.records.episode_log import DiskFull
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.record.checkpoint import newest_checkpoint
from manyturn.trainers.run.loop.loop import train

SHORT, LONG = 3, 20
_STATUS = 4
_LIMITS = (200, 2_000, 20_000, 60_000)  # bytes: of metrics or journal, of tables, of checkpoints


def run(count: int, seed: int, folder: Path) -> Tally:
    finish(folder / "calm")
    calm, keys = figures(folder / "calm"), episode_keys(folder / "calm")
    rng, tally = generator("disk", seed), Tally()
    for number in range(count):
        path, limit, step = folder / f"full-{number}", _LIMITS[number % len(_LIMITS)], int(rng.integers(1, 4))
        status = ended(start(lambda path=path, limit=limit, step=step: _fill(path, limit, step)))
        whole = newest_checkpoint(path / "checkpoints")[0] is not None
        if status == _STATUS and whole:
            finish(path)
        equal = status == _STATUS and whole and figures(path) == calm
        lost, double = missing_and_double(episode_keys(path), keys)
        why = f"limit {limit} at step {step}: status {status}, checkpoint whole {whole}, equal {equal}"
        tally += Tally(1, int(equal), lost, double, 0, 1, int(equal), len(left_behind(path)), [] if equal else [why])
    return tally


def _fill(path: Path, limit: int, step: int) -> None:
    """Train, with room until a step is done and none from then on."""

    def after(line: dict[str, Any]) -> None:
        if line["phase"] == "train" and line["step"] == step:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    try:
        asyncio.run(train(short_run(), path, report=after))
    except DiskFull:
        sys.exit(_STATUS)
