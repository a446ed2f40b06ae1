"""A host under hostile messages: how long a driver waits who plays there meanwhile, and how much memory the host takes.

    python -m benchmarks.serving.host_robustness                        500 hostile messages; some minutes
    python -m benchmarks.serving.host_robustness --toy --out toy.json

``manyturn host`` runs as a user starts it, and a process sends it hostile messages (``hostile_messages.py``). The
driver joins, plays four mazes by the expert, leaves, and joins again, until the last message is over, so that others
can come between. Each of its episodes is compared with the same one without a host. ``turn_s`` is the slowest answer
to a turn, ``reset_s`` that to a beginning, for which the host starts a worker. ``join_s`` is the longest time until it
was let in: one driver plays at a time, and each hostile one that is well formed takes its turn. ``quiet_`` figures are
of the same driver before the first of them. ``host_mb`` is the host's peak, ``below_mb`` that of the processes below
it, looked at four times a second. ``load`` is the machine's over five minutes, with all others on it.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from benchmarks.kit.memory import peak_mb
from benchmarks.kit.provenance import ROOT, origin, write
from benchmarks.serving.host_robustness_table import OUT
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.local.resource_use import held_below
from manyturn.envs.hosting.local.seats import InlineSeats, Seats
from manyturn.envs.hosting.remote.hosted_seats import HostedSeats, Hosts

MAZE = "manyturn/Maze-v0"
_COUNT, _TOY, _EPISODES = 500, 22, 4
_LOOK_SECONDS = 0.25
_PATIENCE = 300.0  # seconds that the driver waits for its place


class Driver:
    """The driver that behaves well, with its figures."""

    def __init__(self) -> None:
        self.joins = self.episodes = self.right = 0
        self.turns, self.resets, self.joined = list[float](), list[float](), list[float]()

    async def play(self, url: str) -> None:
        """Join, play some episodes side by side, compare them, leave."""
        began = time.perf_counter()
        seats = HostedSeats(MAZE, None, (), _EPISODES, Hosts([url], wait=_PATIENCE))
        tasks = [seats.tasks("train")[self.joins * _EPISODES + number] for number in range(_EPISODES)]
        async with seats:
            self.joined.append(time.perf_counter() - began)
            played = await asyncio.gather(*(self._episode(seats, task) for task in tasks))
        async with InlineSeats(MAZE, None, (), _EPISODES) as here:
            expected = await asyncio.gather(*(Driver()._episode(here, task) for task in tasks))
        self.joins, self.episodes = self.joins + 1, self.episodes + _EPISODES
        self.right += sum(one == other for one, other in zip(played, expected, strict=True))

    async def _episode(self, seats: Seats, task: Task) -> list[tuple[str, float, bool | None]]:
        turns = list[tuple[str, float, bool | None]]()
        async with seats.take() as seat:
            answer = await _timed(seat.reset(task, seed=0), self.resets)
            while not answer.ended:
                action = await _timed(seat.expert(), self.turns)
                answer = await _timed(seat.step(action), self.turns)
                turns.append((answer.observation, answer.reward, answer.success))
        return turns


async def _timed(question: Awaitable[Any], seconds: list[float]) -> Any:
    began = time.perf_counter()
    answer = await question
    seconds.append(time.perf_counter() - began)
    return answer


async def measured(url: str, process: int, count: int) -> dict[str, Any]:
    """Figures of the driver and of the host while hostile messages come."""
    quiet, driver, below = Driver(), Driver(), 0
    for _ in range(3):
        await quiet.play(url)
    words = ("-m", "benchmarks.serving.hostile_messages", url, str(count))
    attack = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=ROOT, stdout=subprocess.PIPE)
    over = asyncio.create_task(attack.communicate())

    async def look() -> None:
        nonlocal below
        while not over.done():
            below = max(below, held_below(process)["memory_mb"])
            await asyncio.sleep(_LOOK_SECONDS)

    looking = asyncio.create_task(look())
    while not over.done():
        await driver.play(url)
    output, _ = await over
    await looking
    if attack.returncode:
        raise SystemExit("the process of the hostile messages failed")
    return {
        "messages": count,
        **json.loads(output.splitlines()[-1]),
        **{"joins": driver.joins, "episodes": driver.episodes, "right": driver.right, "turns": len(driver.turns)},
        **_slowest(driver),
        **{f"quiet_{name}": seconds for name, seconds in _slowest(quiet).items()},
        "load": round(os.getloadavg()[1], 1),
        **{"host_mb": round(peak_mb(process)), "below_mb": below},
    }


def _slowest(driver: Driver) -> dict[str, float]:
    kinds = {"turn_s": driver.turns, "reset_s": driver.resets, "join_s": driver.joined}
    return {name: float(f"{max(seconds):.3g}") for name, seconds in kinds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=_COUNT)
    parser.add_argument("--toy", action="store_true", help="so few messages that only the code is tested")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.messages < 1:
        parser.error("messages are at least 1")
    about = origin(options.out, ("manyturn", "websockets", "uvicorn"))
    command = [sys.executable, "-P", "-m", "manyturn", "host", "--port", "0"]
    host = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert host.stdout is not None
        url = host.stdout.readline().partition(" at ")[2].split()[0]
        began = time.perf_counter()
        figures = asyncio.run(measured(url, host.pid, _TOY if options.toy else options.messages))
        figures["seconds"] = round(time.perf_counter() - began)
    finally:
        host.terminate()
        host.communicate(timeout=60)
    figures["ended_with"] = host.returncode
    print(json.dumps(figures, indent=1))
    write(options.out, about, figures)


if __name__ == "__main__":
    main()
