"""Cost of environment hosts: open episodes, memory of all processes, and the driver's own time per turn.

    python -m benchmarks.scale.hosts                     four hosts, 10,000 open episodes; a few minutes
    python -m benchmarks.scale.hosts --toy --out toy.json

The trivial environment and policy of ``concurrent_episodes.py``, in this process (``hosts`` 0) and at hosts on this
machine, each of which keeps it in its own process. All episodes are open before the first of them takes a turn, and are
played to their end and recorded. ``driver_us`` is CPU time of the driver's process for a turn, starting and recording
included; ``added_us`` is that less the local one's. ``driver_mb`` and ``hosts_mb`` are peaks, of all hosts together. A
row is a driver in a fresh process with fresh hosts, the rows take turns, and a figure is the median over the repeats.
"""

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kit.memory import peak_mb
from benchmarks.kit.process import measure_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.scale.concurrent_episodes import CORRIDOR, CROWD, Figures, SaysOneThing, side_by_side
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.envs.hosting.remote.hosted_seats import HostedSeats, Hosts

OUT = RESULTS / "scale_hosts.json"
_HOSTS, _TOY_EPISODES = 4, 40


@contextlib.contextmanager
def hosts(count: int, episodes: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that host so many of all episodes each."""
    words = ("host", CORRIDOR, "--limit", str(-(-episodes // count)), "--workers", "0")
    command = [sys.executable, "-m", "manyturn", *words]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        yield running
    finally:
        for host in running:
            host.terminate()
        for host in running:
            host.communicate(timeout=60)


def address(host: subprocess.Popen[str]) -> str:
    """Address of a host, as soon as it listens."""
    assert host.stdout is not None
    return host.stdout.readline().partition(" at ")[2].split()[0]


def driven(count: int, episodes: int) -> Figures:
    """Whole episodes driven by this process, locally for ``count`` 0."""
    with contextlib.ExitStack() as stack:
        seats, running = open_seats(CORRIDOR, limit=episodes), []
        if count:
            running = stack.enter_context(hosts(count, episodes))
            seats = HostedSeats(CORRIDOR, None, (), episodes, Hosts([address(host) for host in running]))
        began, cpu = time.perf_counter(), time.process_time()
        figures = asyncio.run(side_by_side(seats, SaysOneThing(), episodes, 1))
        spent, cpu = time.perf_counter() - began, time.process_time() - cpu
        turns = figures["steps_per_s"] / figures["episodes_per_s"] * episodes
        return {
            "open_at_once": figures["open_at_once"],
            "episodes_per_s": figures["episodes_per_s"],
            "turns_per_s": figures["steps_per_s"],
            "driver_us": 1e6 * cpu / turns,
            "driver_mb": peak_mb(),
            "hosts_mb": sum(peak_mb(host.pid) for host in running),
            "seconds": spent,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=_HOSTS)
    parser.add_argument("--episodes", type=int, default=CROWD, help="open at once")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--toy", action="store_true", help="so few episodes that only the code is tested")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)  # what a process of its own is told to measure
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(driven(options.one, options.episodes)))
        return
    if options.hosts < 1 or options.episodes < 1 or options.repeats < 1:
        parser.error("hosts, episodes and repeats are at least 1")
    about = origin(options.out, ("manyturn", "gymnasium", "websockets", "uvicorn"))
    episodes = _TOY_EPISODES if options.toy else options.episodes
    runs: dict[int, list[Figures]] = {count: [] for count in (0, 1, options.hosts)}
    for _ in range(1 if options.toy else options.repeats):
        for count, some in runs.items():
            some.append(measure_apart(__file__, "--one", str(count), "--episodes", str(episodes)))
    rows: list[dict[str, Any]] = []
    for count, some in runs.items():
        medians = {key: float(f"{median(run[key] for run in some):.4g}") for key in some[0]}
        added = medians["driver_us"] - rows[0]["driver_us"] if rows else 0.0
        rows.append({"hosts": count, **medians, "added_us": float(f"{added:.4g}")})
        print(rows[-1])
    write(options.out, about, {"rows": rows, "runs": {str(count): some for count, some in runs.items()}})


if __name__ == "__main__":
    main()
