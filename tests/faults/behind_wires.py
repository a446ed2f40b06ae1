"""A run whose hosts and samplers are behind wires, at which harm is done as long as it goes on."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from elsewhere import Wire
from nodes import MOST, Calm, another, is_running, nodes, placed, work_on
from numpy.random import Generator
from short_runs import ended, start
from tally import Tally

from manyturn.envs.contract.random_keys import generator

Harm = Callable[[Wire, Generator], Awaitable[None]]


def disturbed(count: int, seed: int, folder: Path, name: str, harm: Harm) -> Tally:
    """Runs with two hosts and two samplers, until so much harm has been done to their connections.

    Args:
        harm: does it to one wire, on which something is connected.
    """
    calm, rng, tally = Calm(folder / "calm"), generator(name, seed), Tally()
    with nodes(2, 2) as found:
        while tally.injected < count:
            path = another(folder)
            listeners = [socket.create_server(("127.0.0.1", 0)) for _ in found]
            urls = [f"http://127.0.0.1:{one.getsockname()[1]}" for one in listeners]
            config = placed(urls[:2], urls[2:])
            child = start(lambda path=path, config=config: work_on(path, config))  # before there is an event loop
            wires = [Wire(node.url, listener) for node, listener in zip(found, listeners, strict=True)]
            most = min(MOST, count - tally.injected)
            struck = asyncio.run(_storm(wires, child, path, rng, most, harm))
            tally += calm.judge(path, ended(child), struck)
            if tally.lost:
                break
    return tally


async def _storm(wires: list[Wire], child: int, path: Path, rng: Generator, most: int, harm: Harm) -> int:
    """Do harm at random moments until the run has ended; says how often."""
    struck = 0
    async with AsyncExitStack() as stack:
        for wire in wires:
            await stack.enter_async_context(wire)
        while is_running(child):
            await asyncio.sleep(rng.uniform(0.05, 0.35))
            wire = wires[int(rng.integers(len(wires)))]
            # At its beginning a run waits for all of its nodes.
            if struck < most and os.path.isdir(path / "checkpoints/step_000000") and wire.connections:
                struck += int(is_running(child))
                await harm(wire, rng)
    return struck
