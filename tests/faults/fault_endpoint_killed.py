"""The endpoint's process is killed between and during turns and comes back at the same port: nobody loses a turn."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import endpoint as endpoint_program
from guessing import CONFIG, SAMPLING, endpoint, open_files, play_round, seats
from tally import Tally

from manyturn.agents.play.endpoint.completion import Completion
from manyturn.agents.play.endpoint.policy import EndpointRequest, OpenAIPolicy
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 4, 40


class Program:
    """The endpoint as a process that can be killed and started again at its port."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-I", endpoint_program.__file__, str(self.port)]
        for _ in range(20):
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert self._process.stdout is not None
            told = self._process.stdout.readline()
            if told:
                self.port = int(told)
                return
            self.kill()
            time.sleep(0.1)  # a passing connection of somebody else may have been given the port
        raise RuntimeError(f"the endpoint does not start at port {self.port}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Gated(OpenAIPolicy):
    """Knows how many requests are under way, and can hold back new ones so that there are none."""

    under_way = 0

    def __init__(self, url: str):
        # Patient enough for a server that takes its time to start again.
        super().__init__("halving", CONFIG, SAMPLING, endpoint(url, attempts=100, timeout=2.0))
        self.gate = asyncio.Event()
        self.gate.set()

    async def complete(self, request: EndpointRequest, key: EpisodeKey, turn: int) -> Completion:
        await self.gate.wait()
        self.under_way += 1
        try:
            return await super().complete(request, key, turn)
        finally:
            self.under_way -= 1


async def _kill_and_restart(program: Program, policy: Gated, during: bool, moment: float) -> bool:
    """Kill in the middle of requests, or while there are none; says whether it came to that."""
    if during:
        while not policy.under_way:
            await asyncio.sleep(0.001)
        await asyncio.sleep(moment * 0.03)  # within the time that an answer takes
    else:
        policy.gate.clear()
        while policy.under_way:
            await asyncio.sleep(0.001)
    as_meant = (policy.under_way > 0) == during
    program.kill()
    policy.gate.set()
    await asyncio.sleep(moment * 0.1)  # some requests find nobody there
    await asyncio.to_thread(program.start)
    return as_meant


def run(count: int, seed: int, folder: Path) -> Tally:
    before = open_files()
    tally = asyncio.run(_run(count, seed))
    tally.orphans += max(0, open_files() - before)
    tally.survived = tally.injected - min(tally.injected, tally.lost + tally.duplicated + tally.misattributed)
    return tally


async def _run(count: int, seed: int) -> Tally:
    program = Program()
    policy = Gated(f"http://127.0.0.1:{program.port}/v1")
    opening = EndpointRequest([{"role": "user", "content": "a number from 1 to 9"}])
    await policy.complete(opening, EpisodeKey(seed, "opening", "none", 0), 0)  # from now on it is known to be there
    rng = generator("kill the endpoint", seed)
    kills: Counter[bool] = Counter()

    async def killer() -> None:
        while kills.total() < count:
            await asyncio.sleep(rng.random() * 0.1)
            during = kills[True] <= kills[False]
            kills[during] += await _kill_and_restart(program, policy, during, rng.random())

    tally, number, killing = Tally(), 0, asyncio.create_task(killer())
    try:
        async with seats() as opened:
            while not killing.done():
                tally += await play_round(opened, policy, seed, number)
                number += 1
        await killing
    finally:
        killing.cancel()
        program.kill()
    tally.injected = kills.total()
    return tally
