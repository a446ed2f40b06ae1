"""An environment leaks memory, files, threads or processes, also such as fled from its session."""

import asyncio
import os
from pathlib import Path

from chaos import LEAKING, TURNS
from tally import Tally
from trial import Trial

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.local.resource_use import WorkerLimits
from manyturn.envs.hosting.local.seats import WorkerSeats

SHORT, LONG = 4, 20
LIMITS = WorkerLimits(memory_mb=140, files=50, threads=25, processes=5)


def run(count: int, seed: int, folder: Path) -> Tally:
    rng = generator("env_leaks", seed)
    kinds = list(LEAKING)
    schedule = {f"train/{2 * i}": [("step", int(rng.integers(TURNS)), kinds[i % len(kinds)])] for i in range(count)}
    trial = Trial(folder, seed, schedule)
    return trial.audit(broken=asyncio.run(_play(trial, count)))


async def _play(trial: Trial, count: int) -> list[str]:
    """Play each leaking episode beside a sound one; returns the tasks whose worker stayed."""
    stayed = []
    async with trial.seats(limit=2, workers=1, limits=LIMITS) as seats:
        assert isinstance(seats, WorkerSeats)
        for i in range(count):
            await trial.play(seats, (2 * i, 2 * i + 1))
            pid = trial.faults[-1].pid
            if len(trial.faults) != i + 1 or not await _gone(pid, 5.0):
                stayed.append(f"train/{2 * i}")
    return stayed


async def _gone(pid: int, seconds: float) -> bool:
    for _ in range(int(seconds / 0.02)):
        if not os.path.exists(f"/proc/{pid}"):
            return True
        await asyncio.sleep(0.02)
    return False
