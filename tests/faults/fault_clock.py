"""The wall clock jumps, here and in the worker: nothing is late for it, and what hangs is freed all the same."""

import asyncio
import time
from pathlib import Path
from unittest.mock import patch

from chaos import TURNS
from tally import Tally
from trial import Trial

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 2, 10
TIMEOUT = 1.2


def run(count: int, seed: int, folder: Path) -> Tally:
    rng = generator("clock", seed)
    schedule = {}
    for i in range(count):
        # The first turn after the jump takes a while, a later one for ever; after that the episode is played again.
        schedule[f"train/{i}"] = [("step", 0, "jump"), ("step", int(rng.integers(1, TURNS)), "sleep")]
    trial = Trial(folder, seed, schedule)
    asyncio.run(_play(trial, count, rng))
    jumped, hung = ([f for f in trial.faults if f.kind == kind] for kind in ("jump", "sleep"))
    waited = [min(t for task, t in trial.asker.left if task == f.task and t > f.time) - f.time for f in hung]
    right = len(hung) == len(jumped) == count and all(0.9 * TIMEOUT < seconds < TIMEOUT + 2 for seconds in waited)
    once = all(record.attempts == 2 for record in trial.records)
    tally = trial.audit(broken=[] if right and once else list(schedule))
    tally.injected, tally.survived = len(jumped), tally.survived - len(hung) if right and once else 0
    return tally


async def _play(trial: Trial, count: int, rng) -> None:
    real = time.time
    jumps = iter(rng.uniform(-1e8, 1e8, size=10**5))
    with patch("time.time", lambda: real() + next(jumps)):  # another time each time that somebody asks
        async with trial.seats(limit=2, workers=2, timeout=TIMEOUT) as seats:
            await trial.play(seats, range(count))
