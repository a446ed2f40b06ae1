"""Servers of environments, in this process or in one of their own, and episodes that are played without any."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import manyturn as mt

ENVS = Path(__file__).parents[2] / "envs"
FAULTY = f"{ENVS / 'faulty.py'}:Faulty"
ALL_SPLITS = ("--split", "train", "--split", "validation", "--split", "test", "--held-out")
UNSCORABLE = f"{ENVS / 'broken.py'}:Unscorable"


class Played(NamedTuple):
    """A turn as the environment itself plays it; ``action`` is None before the first."""

    action: str | None
    text: str
    reward: float
    ended: bool
    truncated: bool
    parts: dict[str, float]


def transcript(env_id: str, seed: int, garbage: int = 0, task: str | None = None) -> list[Played]:
    """An episode of the expert, in this process, which first says something meaningless so many times."""
    env = mt.make(env_id)
    text, info = env.reset(seed=seed, options=None if task is None else {"task": task})
    turns, over = [Played(None, text, 0.0, False, False, info["reward_parts"])], False
    while not over:
        action = f"nonsense é {len(turns)}" if len(turns) <= garbage else env.unwrapped.expert()
        text, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        turns.append(Played(action, text, reward, over, truncated, info["reward_parts"]))
    env.close()
    return turns


@contextlib.contextmanager
def process(env: str, wire: str, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``manyturn serve`` as a user starts it: its address, and the process."""
    command = [sys.executable, "-m", "manyturn", "serve", env, "--as", wire, *words]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None and running.stderr is not None
        line = running.stdout.readline()
        if not line:
            pytest.fail(f"{command} ended: {running.stderr.read()}")
        yield line.partition(": ")[2].split()[0], running
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGINT)
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()
        running.communicate()


@contextlib.asynccontextmanager
async def serving(env: str, wire: str, token: str | None = None, **served: Any) -> AsyncIterator[tuple[str, Any]]:
    """A server in this event loop: its address, and its episodes."""
    from manyturn.serving.server import Listening, Served, serve
    from manyturn.serving.wires.registry import wire_of

    chosen, held, address = wire_of(wire), [], asyncio.get_running_loop().create_future()

    def app(episodes: Any) -> Any:
        held.append(episodes)
        return chosen.app(episodes)

    settings = Served(env, **{"env_args": {}, "workers": 0, "splits": ("train", "validation", "test"), **served})
    work = asyncio.create_task(serve(settings, Listening(token=token), app, address.set_result))
    await asyncio.wait([work, address], return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
    try:
        yield f"{address.result()}{chosen.path}", held[0]
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def talk(url: str, path: str = "/ws", headers: Any = ()) -> Any:
    """A WebSocket to a server, over which any message can be sent."""
    from benchmarks.serving.clients import Talk

    return await Talk.open(url, path, headers)


async def file(path: Path) -> None:
    """Wait until a file is there, or the test's time is over."""
    while not path.exists():
        await asyncio.sleep(0.01)
