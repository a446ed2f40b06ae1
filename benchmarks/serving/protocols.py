"""Cost of a wire: steps a second through ``manyturn serve`` next to those in this process.

    python -m benchmarks.serving.protocols                       about two minutes
    python -m benchmarks.serving.protocols --only Desk --episodes 4

The expert's episodes are recorded in this process. Their actions are then played through a server of its own, by one
client alone and by 64 at once, and every text and reward is compared with the record: a server that is fast and wrong
ends this. Client and server share the machine, and the client's work is in the figures.
"""

import argparse
import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.serving.clients import Player, players
from manyturn.envs.contract.registration.env_registry import make

OUT = RESULTS / "interop.json"
ENVS = ("Desk", "Shop", "Household")
WIRES = ("mcp", "openenv", "nemo-gym")
AT_ONCE = (1, 64)


class Recorded(NamedTuple):
    """An episode: its seed, its first text, and of each turn action, text, reward and whether it was the last."""

    seed: int
    text: str
    turns: list[tuple[str, str, float, bool]]


def record(env_id: str, episodes: int) -> list[Recorded]:
    """The expert's episodes."""
    env: Any = make(env_id)
    recorded = []
    for seed in range(episodes):
        text, _ = env.reset(seed=seed)
        first, turns, over = text, [], False
        while not over:
            action = env.unwrapped.expert()
            text, reward, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
            turns.append((action, text, float(reward), over))
        recorded.append(Recorded(seed, first, turns))
    env.close()
    return recorded


def alone(env_id: str, recorded: Sequence[Recorded]) -> float:
    """Steps a second in this process, resets included."""
    env = make(env_id)
    began = time.perf_counter()
    for episode in recorded:
        env.reset(seed=episode.seed)
        for action, *_ in episode.turns:
            env.step(action)
    took = time.perf_counter() - began
    env.close()
    return sum(len(episode.turns) for episode in recorded) / took


@contextlib.contextmanager
def server(env_id: str, wire: str, workers: int) -> Iterator[str]:
    """A server's address."""
    words = ("serve", env_id, "--as", wire, "--limit", str(max(AT_ONCE)), "--workers", str(workers))
    running = subprocess.Popen([sys.executable, "-m", "manyturn", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        yield running.stdout.readline().partition(": ")[2].split()[0]
    finally:
        running.terminate()
        running.communicate(timeout=60)


async def through(wire: str, url: str, recorded: Sequence[Recorded], at_once: int) -> float:
    """Steps a second of so many clients at once, resets included. Raises SystemExit if a turn is not as recorded."""
    waiting = list(reversed(recorded))

    async def play(player: Player) -> None:
        while waiting:
            episode = waiting.pop()
            if await player.begin(episode.seed) != episode.text:
                raise SystemExit(f"{wire}: seed {episode.seed} begins in another way than here")
            for number, (action, *expected) in enumerate(episode.turns):
                if [*await player.act(action)] != expected:
                    raise SystemExit(f"{wire}: turn {number} of seed {episode.seed} is another one than here")

    async with players(wire, url, at_once) as clients:
        began = time.perf_counter()
        await asyncio.gather(*map(play, clients))
        return sum(len(episode.turns) for episode in recorded) / (time.perf_counter() - began)


def measure(env_id: str, episodes: int, workers: int) -> dict[str, Any]:
    """Steps a second of one environment, by way and number of clients."""
    recorded = record(env_id, episodes)
    figures: dict[str, Any] = {"in this process": {"1": alone(env_id, recorded)}}
    for wire in WIRES:
        with server(env_id, wire, workers) as url:
            figures[wire] = {str(n): asyncio.run(through(wire, url, recorded, n)) for n in AT_ONCE}
    return {way: {n: round(speed, 1) for n, speed in speeds.items()} for way, speeds in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=ENVS, help="one environment")
    parser.add_argument("--episodes", type=int, default=128)
    parser.add_argument(
        "--workers", type=int, default=1, help="processes that host the environment; 0: the server's own"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    about = origin(options.out, ("mcp", "starlette", "uvicorn", "wsproto"))
    results = {}
    for name in [options.only] if options.only else ENVS:
        results[name] = measure(f"manyturn/{name}-v0", options.episodes, options.workers)
        print(name, *(f"{way} {speeds}" for way, speeds in results[name].items()), sep="\n  ", flush=True)
    write(options.out, about, {"episodes": options.episodes, "workers": options.workers, "steps_per_second": results})


if __name__ == "__main__":
    main()
