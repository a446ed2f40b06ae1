"""Episodes have threads in a worker, and one of them hangs, dies, keeps Python's lock or starts threads itself."""

import asyncio
from pathlib import Path

from chaos import IN_THREADS, TURNS
from tally import Tally
from trial import Trial

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 16, 160
TIMEOUT = 2.0
_SLACK = 2.0


def run(count: int, seed: int, folder: Path) -> Tally:
    rng = generator("worker_threads", seed)
    kinds = list(IN_THREADS)
    schedule = {
        f"train/{2 * i}": [("step", int(rng.integers(TURNS)), kinds[i % len(kinds)])]  # every second episode is sound
        for i in range(count)
    }
    trial = Trial(folder, seed, schedule, "ChaosOutside")
    asyncio.run(_play(trial, 2 * count))
    slowest = trial.slowest_release()
    unfinished = [record.key.task for record in trial.records if record.ending.is_error]
    tally = trial.audit(broken=unfinished if slowest < TIMEOUT + _SLACK else list(schedule))
    tally.notes.append(f"worker_threads: the slowest of {count} was freed {slowest:.2f} s after its fault")
    return tally


async def _play(trial: Trial, episodes: int) -> None:
    async with trial.seats(limit=12, workers=2, timeout=TIMEOUT) as seats:
        await trial.play(seats, range(episodes))
