"""How many episodes one process holds and how fast it steps them, with Gymnasium's vector environments beside it.

    python benchmarks/scale.py                             everything, about five minutes
    python benchmarks/scale.py --only seats --repeats 5    what has "seats" in its name

Every measurement is a fresh process, the repeats of all measurements take turns, and a figure is the median over the
repeats. Times are wall times after the imports. A trivial environment of 20 turns (``scale_peers.py``) shows what the
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
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import scale_peers as peers
from provenance import RESULTS, origin, write

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.episode import Act, Player, Policy
from manyturn.agents.play.scripted import Scripted
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.hosting.host import Answer
from manyturn.envs.hosting.seats import Seat, Seats, open_seats

OUT = RESULTS / "scale.json"
CORRIDOR = f"{peers.__file__}:Corridor"
CROWD, FEW = 10_000, 512
_SECONDS = 2.0  # that stepping is measured for, resets not counted

Figures = dict[str, float]


class SaysOneThing:
    """The cheapest policy."""

    name = "says one thing"
    ledger: Ledger | None = None

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return self

    async def act(self, step: Answer, seat: Seat) -> Act:
        return Act(peers.ACTION, peers.ACTION)

    def leave(self) -> None:
        """Nothing is kept."""


class TakingTurns:
    """A policy that lets every other episode have a turn before its own, and counts those that are open.

    Args:
        policy: the policy that plays.
        wanted: episodes that shall be open at once.

    Attributes:
        most: episodes that were open at once, each reset and not ended.
        idle_mb: memory of the process at the moment when as many as wanted were, before any took a turn.
    """

    def __init__(self, policy: Policy, wanted: int):
        self.name, self.policy, self.wanted = policy.name, policy, wanted
        self.open = self.most = 0
        self.idle_mb = 0.0

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return _Turnwise(self, self.policy.player(key, instructions))

    def began(self) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        if self.open == self.wanted and not self.idle_mb:
            self.idle_mb = peers.memory_mb()


class _Turnwise:
    def __init__(self, count: TakingTurns, player: Player):
        self._count, self._player, self._began = count, player, False

    @property
    def ledger(self) -> Ledger | None:
        return self._player.ledger

    async def act(self, step: Answer, seat: Seat) -> Act:
        if not self._began:
            self._began = True
            self._count.began()
        await asyncio.sleep(0)
        return await self._player.act(step, seat)

    def leave(self) -> None:
        self._count.open -= self._began
        self._player.leave()


async def side_by_side(opened: Seats, policy: Policy, count: int, rounds: int) -> Figures:
    """Whole episodes, ``count`` at a time; the environments are made in the first round and used again after it."""
    before, turns, spent = peers.memory_mb(), 0, 0.0
    counted = TakingTurns(policy, count)
    async with opened as seats:
        for number in range(rounds):
            tasks = seats.tasks("train")[:count]
            plan = [(task, EpisodeKey(number, "scale", task.id, 0)) for task in tasks]
            began = time.perf_counter()
            episodes = await gather(seats, counted, plan, max_turns=100)
            spent += time.perf_counter() - began
            turns += sum(len(episode.turns) for episode in episodes)
            if any(episode.ending.is_error for episode in episodes):
                raise RuntimeError(f"{opened.name}: an episode ended in an error")
    if counted.most != count or counted.open:
        raise RuntimeError(f"{counted.most} of {count} episodes were open at once, {counted.open} never ended")
    return {
        "open_at_once": counted.most,
        "episodes_per_s": rounds * count / spent,
        "steps_per_s": turns / spent,
        "idle_kb_each": (counted.idle_mb - before) / count * 1000,
        "peak_mb": peak_mb(),
    }


async def seats_in_turn(count: int) -> Figures:
    """``count`` seats stepped one after the other."""
    before, began = peers.memory_mb(), time.perf_counter()
    async with contextlib.AsyncExitStack() as stack:
        seats = await stack.enter_async_context(open_seats(CORRIDOR, limit=count))
        tasks = seats.tasks("train")[:count]
        held = [await stack.enter_async_context(seats.take()) for _ in range(count)]

        async def reset() -> None:
            for seed, (seat, task) in enumerate(zip(held, tasks, strict=True)):
                await seat.reset(task, seed)

        await reset()
        started, memory = time.perf_counter() - began, peers.memory_mb() - before
        steps, spent = 0, 0.0
        while spent < _SECONDS:
            await reset()
            began = time.perf_counter()
            for _ in range(peers.TURNS):
                for seat in held:
                    await seat.step(peers.ACTION)
            spent += time.perf_counter() - began
            steps += peers.TURNS * count
    return {"start_s": started, "steps_per_s": steps / spent, "memory_mb": memory}


def peak_mb(process: int | str = "self") -> float:
    """The most memory that a process had."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc/{process}/status has no VmHWM: this benchmark needs Linux")


def measurements() -> dict[str, Callable[[], Figures]]:
    """Name -> what measures it in this process."""

    def gathered(env: str, policy: Policy, count: int, rounds: int) -> Figures:
        return asyncio.run(side_by_side(open_seats(env, limit=count), policy, count, rounds))

    expert, one_thing = Scripted(0.0), SaysOneThing()
    found: dict[str, Callable[[], Figures]] = {
        f"gather {CROWD} corridor": lambda: gathered(CORRIDOR, one_thing, CROWD, 1),
        f"gather {FEW} corridor": lambda: gathered(CORRIDOR, one_thing, FEW, 8),
        f"seats {FEW} corridor": lambda: asyncio.run(seats_in_turn(FEW)),
        f"plain loop {FEW}": lambda: peers.plain_loop(FEW, _SECONDS),
    }
    for name in ("manyturn/GuessNumber-v0", "manyturn/Maze-v0"):
        found[f"gather {CROWD} {name}"] = lambda name=name: gathered(name, expert, CROWD, 1)
    for name, make in peers.vector_makers(FEW).items():
        found[f"{name} {FEW}"] = lambda make=make: peers.vector(make, _SECONDS)
    return found


def measured_apart(name: str) -> Figures:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


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
    known = measurements()
    if options.one:
        print(json.dumps(known[options.one]()))
        return
    names = [name for name in known if options.only in name]
    if not names or options.repeats < 1:
        parser.error(f"nothing to measure: --repeats at least 1, --only part of one of: {', '.join(known)}")
    about = origin(options.out, ("manyturn", "gymnasium", "numpy"))
    runs = {name: list[Figures]() for name in names}
    for _ in range(options.repeats):
        for name in names:
            runs[name].append(measured_apart(name))
    rows = [row(name, runs[name]) for name in names]
    show(rows)
    write(options.out, about, {"repeats": options.repeats, "rows": rows})


if __name__ == "__main__":
    main()
