"""Samplers and ranks that a run starts on its own machine, and that end with it.

Each stands below a keeper (``process_reaper``), so that none outlives the run, however it ends. On a machine with GPUs
rank N learns on GPU N, and the samplers draw on those that follow.
"""

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from typing import Self

import torch

from manyturn.agents.engine.engine import EngineLost
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.hosting.handle.env_spec_message import KEEPER
from manyturn.trainers.learn.ranks.process_group import RankLost

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_START_SECONDS = 120.0  # imports, on a machine that is busy
_TAIL_BYTES = 4000
_SAMPLER = "a sampler at "  # begins the line that manyturn sampler prints


class MachineProcesses:
    """Processes of one run, as an async context manager that starts and ends them.

    Args:
        learners: ranks, the run itself included.
        samplers: processes that draw tokens.
        port: of this machine, where rank 0 meets the others; None with one learner.
        device: of the run.

    Attributes:
        sampler_urls: addresses of the samplers, once they are started.
        token: that the samplers ask for.

    Raises:
        ConfigError: the machine has fewer GPUs than that.
        EngineLost: a sampler has ended before it could draw.
        RankLost: a rank has ended before it could learn.
    """

    def __init__(self, learners: int, samplers: int, port: int | None, device: torch.device):
        self._cards = _cards(learners + samplers) if device.type == "cuda" else None
        self._learners, self._samplers, self._port = learners, samplers, port
        self.token, self.sampler_urls = secrets.token_hex(32), list[str]()
        self._children = list[_Child]()
        self._watches = list[asyncio.Task[None]]()
        self._rank_end, self._has_rank_end = "", asyncio.Event()

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(_START_SECONDS):
                samplers = [await self._start_sampler(number) for number in range(self._samplers)]
                ranks = [await self._start_rank(number) for number in range(1, self._learners)]
                for number, sampler in enumerate(samplers, 1):
                    line = await sampler.first_line()
                    if not line.startswith(_SAMPLER):
                        raise EngineLost(f"sampler {number} of this machine has ended: {await sampler.reason()}")
                    self.sampler_urls.append(line.removeprefix(_SAMPLER).split()[0])
                for number, rank in enumerate(ranks, 1):
                    if await rank.first_line() != "ready":
                        raise RankLost(f"rank {number} has ended: {await rank.reason()}")
        except BaseException as error:
            await self._end()
            if isinstance(error, TimeoutError):
                raise RankLost(
                    f"samplers and ranks were not ready within {_START_SECONDS:g} s: set fewer of them"
                ) from None
            raise
        self._watches = [asyncio.create_task(self._watch(number, rank)) for number, rank in enumerate(ranks, 1)]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def rank_end(self) -> str:
        """First rank that ends before the run, and the reason."""
        await self._has_rank_end.wait()
        return self._rank_end

    async def _watch(self, number: int, rank: "_Child") -> None:
        why = await rank.reason()
        self._rank_end = self._rank_end or f"rank {number} has ended ({why})"
        self._has_rank_end.set()

    async def _start_sampler(self, number: int) -> "_Child":
        device = "cpu" if self._cards is None else "cuda"
        environ = {"MANYTURN_TOKEN": self.token}
        environ[_VISIBLE] = "" if self._cards is None else self._cards[self._learners + number]
        return await self._start(("manyturn", "sampler", "--device", device), environ)

    async def _start_rank(self, number: int) -> "_Child":
        words = ("manyturn.trainers.run.setup.ranks.follower", str(number), str(self._learners), str(self._port))
        return await self._start(words, {_VISIBLE: ""} if self._cards is None else {})

    async def _start(self, words: Sequence[str], environ: Mapping[str, str]) -> "_Child":
        process = await asyncio.create_subprocess_exec(
            *(*KEEPER, str(os.getpid())),
            *(sys.executable, "-P", "-m", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # signals of a terminal are for the run, which ends them in order
            env={**os.environ, **environ},
        )
        self._children.append(_Child(process))
        return self._children[-1]

    async def _end(self) -> None:
        for watch in self._watches:
            watch.cancel()
        for child in self._children:
            child.terminate()
        for child in self._children:
            await child.reason()


class _Child:
    """A process that has been started, and its last words."""

    def __init__(self, process: asyncio.subprocess.Process):
        self._process, self._tail = process, b""
        self._reading = asyncio.create_task(self._read())

    async def first_line(self) -> str:
        """The first line that it prints; empty if it ends before."""
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode(errors="replace").strip()

    async def reason(self) -> str:
        """Wait for its end; its last line on standard error, or its exit code."""
        code = await self._process.wait()
        await asyncio.shield(self._reading)
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {code}"

    def terminate(self) -> None:
        """Have its keeper end it with all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    async def _read(self) -> None:
        assert self._process.stderr is not None
        while some := await self._process.stderr.read(_TAIL_BYTES):
            self._tail = (self._tail + some)[-_TAIL_BYTES:]


def _cards(count: int) -> list[str]:
    """Names of the GPUs, for ``CUDA_VISIBLE_DEVICES``. Raises ConfigError if there are fewer."""
    visible = os.environ.get(_VISIBLE, "").split(",") if os.environ.get(_VISIBLE) else []
    cards = visible or [str(number) for number in range(torch.cuda.device_count())]
    if len(cards) < count:
        raise ConfigError(
            f"placement.learners and placement.samplers want {count} GPUs, one for each, and there are {len(cards)}: "
            "set lower numbers, or device = 'cpu'"
        )
    return cards
