"""Episodes in one process and its steps a second, next to Gymnasium's vector environments.

    python -m benchmarks.scale.single_process                             everything, about five minutes
    python -m benchmarks.scale.single_process --only seats --repeats 5    what has "seats" in its name

Every measurement is a fresh process, the repeats of all measurements take turns, and a figure is the median over the
repeats. Times are wall times after the imports. A trivial environment of 20 turns (``vector_envs.py``) shows what the
machinery costs; the project's own environments, played by their experts, stand beside it.

``gather`` plays whole episodes through ``open_seats`` and ``gather``, resets and records included. Its policy hands
over to the next episode before each turn, so that all of them go on side by side; a run in which they were not all open
at once is an error. ``seats`` steps seats in turn and keeps nothing. The peers step in lockstep and keep nothing
either.
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kit.process import measure_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.scale import vector_envs
from benchmarks.scale.concurrent_episodes import CORRIDOR, CROWD, FEW, Figures, SaysOneThing, side_by_side
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Policy
from manyturn.envs.hosting.local.seats import open_seats

OUT = RESULTS / "scale.json"
_SECONDS = 2.0  # that stepping is measured for, resets not counted


async def seats_in_turn(count: int) -> Figures:
    """``count`` seats stepped one after the other."""
    before, began = vector_envs.memory_mb(), time.perf_counter()
    async with contextlib.AsyncExitStack() as stack:
        seats = await stack.enter_async_context(open_seats(CORRIDOR, limit=count))
        tasks = seats.tasks("train")[:count]
        held = [await stack.enter_async_context(seats.take()) for _ in range(count)]

        async def reset() -> None:
            for seed, (seat, task) in enumerate(zip(held, tasks, strict=True)):
                await seat.reset(task, seed)

        await reset()
        started, memory = time.perf_counter() - began, vector_envs.memory_mb() - before
        steps, spent = 0, 0.0
        while spent < _SECONDS:
            await reset()
            began = time.perf_counter()
            for _ in range(vector_envs.TURNS):
                for seat in held:
                    await seat.step(vector_envs.ACTION)
            spent += time.perf_counter() - began
            steps += vector_envs.TURNS * count
    return {"start_s": started, "steps_per_s": steps / spent, "memory_mb": memory}


def measurements() -> dict[str, Callable[[], Figures]]:
    """Name -> what measures it in this process."""

    def gathered(env: str, policy: Policy, count: int, rounds: int) -> Figures:
        return asyncio.run(side_by_side(open_seats(env, limit=count), policy, count, rounds))

    expert, one_thing = Scripted(0.0), SaysOneThing()
    measures: dict[str, Callable[[], Figures]] = {
        f"gather {CROWD} corridor": lambda: gathered(CORRIDOR, one_thing, CROWD, 1),
        f"gather {FEW} corridor": lambda: gathered(CORRIDOR, one_thing, FEW, 8),
        f"seats {FEW} corridor": lambda: asyncio.run(seats_in_turn(FEW)),
        f"plain loop {FEW}": lambda: vector_envs.plain_loop(FEW, _SECONDS),
    }
    for name in ("manyturn/GuessNumber-v0", "manyturn/Maze-v0"):
        measures[f"gather {CROWD} {name}"] = lambda name=name: gathered(name, expert, CROWD, 1)
    for name, make in vector_envs.vector_makers(FEW).items():
        measures[f"{name} {FEW}"] = lambda make=make: vector_envs.vector(make, _SECONDS)
    return measures


def row(name: str, runs: list[Figures]) -> dict[str, Any]:
    medians = {key: _rounded(median(run[key] for run in runs)) for key in runs[0]}
    return {"name": name, "median": medians, "runs": [{k: _rounded(v) for k, v in run.items()} for run in runs]}


def _rounded(value: float) -> float:
    return round(value) if value >= 1000 else float(f"{value:.3g}")


def show(rows: list[dict[str, Any]]) -> None:
    """Print the medians as a table."""
    columns = ("start_s", "steps_per_s", "episodes_per_s", "open_at_once", "idle_kb_each", "peak_mb", "memory_mb")
    print(f"{'':<44}" + "".join(f"{column:>15}" for column in columns))
    for each in rows:
        cells = (each["median"].get(column) for column in columns)
        print(f"{each['name']:<44}" + "".join(f"{'' if cell is None else format(cell, ','):>15}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure only what has this in its name")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # what a process of its own is told to measure
    options = parser.parse_args()
    measures = measurements()
    if options.one:
        print(json.dumps(measures[options.one]()))
        return
    names = [name for name in measures if options.only in name]
    if not names or options.repeats < 1:
        parser.error(f"nothing to measure: --repeats at least 1, --only part of one of: {', '.join(measures)}")
    about = origin(options.out, ("manyturn", "gymnasium", "numpy"))
    runs = {name: list[Figures]() for name in names}
    for _ in range(options.repeats):
        for name in names:
            runs[name].append(measure_apart(__file__, "--one", name))
    rows = [row(name, runs[name]) for name in names]
    show(rows)
    write(options.out, about, {"repeats": options.repeats, "rows": rows})


if __name__ == "__main__":
    main()
