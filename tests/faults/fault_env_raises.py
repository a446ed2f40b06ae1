"""An environment raises in reset, step, expert or close, in this process or in a worker."""

import asyncio
import warnings
from pathlib import Path

from chaos import RAISING, TURNS
from tally import Tally
from trial import ATTEMPTS, Schedule, Trial

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 20, 200
_SHARE = 0.05  # of calls that raise
_CALLS = [("reset", 0), *((where, turn) for turn in range(TURNS) for where in ("expert", "step"))]


def run(count: int, seed: int, folder: Path) -> Tally:
    tally = Tally()
    for workers, part in ((0, count // 2), (2, count - count // 2)):
        trial = Trial(folder, seed, draw(part, seed, workers))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* raised in close")
            asyncio.run(_play(trial, workers))
        tally += trial.audit()
    return tally


def draw(count: int, seed: int, workers: int) -> Schedule:
    """Harm in a share of all calls, of further attempts too, and sometimes again when the environment is closed."""
    rng, left = generator("env_raises", seed, workers), count
    schedule: Schedule = {}
    while left:
        harms = schedule[f"train/{len(schedule)}"] = []
        for _ in range(ATTEMPTS):
            hit = next((call for call in _CALLS if rng.random() < _SHARE), None)
            if hit is None or not left:
                break
            harms.append((*hit, str(rng.choice(list(RAISING)))))
            left -= 1
            if left and rng.random() < 0.3 and harms[-1][2] != "CancelledError":  # which ends a worker at once
                harms.append(("close", hit[1], str(rng.choice(["OSError", "SystemExit"]))))
                left -= 1
    return schedule


async def _play(trial: Trial, workers: int) -> None:
    # One episode on each worker at a time: CancelledError ends a worker, which would cost neighbours an attempt.
    async with trial.seats(limit=workers or 8, workers=workers) as seats:
        await trial.play(seats, range(len(trial.schedule)))
