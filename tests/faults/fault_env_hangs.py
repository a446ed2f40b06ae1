"""An environment hangs: it sleeps, computes for ever, keeps Python's lock in C, or ignores signals."""

import asyncio
from pathlib import Path

from chaos import HANGING, TURNS
from tally import Tally
from trial import Trial

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 6, 40
TIMEOUT = 1.0


def run(count: int, seed: int, folder: Path) -> Tally:
    rng = generator("env_hangs", seed)
    kinds = list(HANGING)
    schedule = {
        f"train/{2 * i}": [(*_place(rng), kinds[i % len(kinds)])]  # every second episode is sound
        for i in range(count)
    }
    trial = Trial(folder, seed, schedule)
    asyncio.run(_play(trial, 2 * count))
    slowest = trial.slowest_release()
    tally = trial.audit(broken=[] if slowest < TIMEOUT + 2 else list(schedule))
    tally.notes.append(f"env_hangs: the slowest of {count} was freed {slowest - TIMEOUT:.2f} s after its timeout")
    return tally


def _place(rng) -> tuple[str, int]:
    turn = int(rng.integers(TURNS))
    return [("reset", 0), ("step", turn), ("expert", turn)][rng.integers(3)]


async def _play(trial: Trial, episodes: int) -> None:
    async with trial.seats(limit=4, workers=3, timeout=TIMEOUT) as seats:
        await trial.play(seats, range(episodes))
