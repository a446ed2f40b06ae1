"""A worker is killed, crashes or is stopped at a random turn; the episode is played again and comes out the same."""

import asyncio
from pathlib import Path

from chaos import DYING, TURNS
from tally import Tally
from trial import Trial

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 10, 110
TIMEOUT = 1.0


def run(count: int, seed: int, folder: Path) -> Tally:
    rng = generator("worker_killed", seed)
    kinds = rng.choice(list(DYING), size=count, p=[0.35, 0.25, 0.2, 0.2])
    schedule = {
        f"train/{i}": [(str(rng.choice(["step", "expert"])), int(rng.integers(TURNS)), str(kind))]
        for i, kind in enumerate(kinds)
    }
    trial = Trial(folder, seed, schedule)
    asyncio.run(_play(trial, count))
    unfinished = [record.key.task for record in trial.records if record.ending.is_error]
    return trial.audit(broken=unfinished)


async def _play(trial: Trial, episodes: int) -> None:
    # One episode on each worker at a time: with more, the deaths of neighbours would use up an episode's attempts.
    async with trial.seats(limit=3, workers=3, timeout=TIMEOUT) as seats:
        await trial.play(seats, range(episodes))
