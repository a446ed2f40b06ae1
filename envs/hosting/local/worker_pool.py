"""The worker processes of one environment: started when needed, replaced when they are gone or have grown too large."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manyturn.envs.hosting.local.resource_use import LOOK_SECONDS, WorkerLimits, held_below
from manyturn.envs.hosting.local.worker import Worker


@dataclass(eq=False)
class PooledWorker:
    """A worker and its episodes: how many it hosts now, and how many it has hosted that are over."""

    worker: Worker
    aboard: int = 0
    served: int = 0


class WorkerPool:
    """Workers in numbered places; use it in one event loop.

    Args:
        hello: which environment, as for ``Worker.start``.
        size: number of places.
        timeout: seconds for one request.
        limits: what one worker may hold.

    Attributes:
        replaced: how many workers were replaced for going beyond each limit.
    """

    def __init__(self, hello: Mapping[str, Any], size: int, timeout: float, limits: WorkerLimits):
        self._hello, self._timeout, self._limits = hello, timeout, limits
        self._places: list[PooledWorker | None] = [None] * size
        self._locks = [asyncio.Lock() for _ in range(size)]
        self._members: set[PooledWorker] = set()  # those retired from their place too, until their last episode ends
        self._endings: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._closed = False
        self._behind = 0.0  # s, of workers that are gone
        self.replaced: Counter[str] = Counter()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that take episodes now."""
        return [member.worker.pid for member in self._places if member is not None and member.worker.alive]

    def take_behind(self) -> float:
        """Seconds that requests waited behind others since the last call, in all workers together."""
        seconds, self._behind = self._behind, 0.0
        return seconds + sum(member.worker.take_behind() for member in self._members)

    async def board(self, place: int) -> PooledWorker:
        """Add an episode to the worker of a place, which is started if need be. Raises WorkerError."""
        async with self._locks[place]:
            if self._closed:
                raise RuntimeError("the workers are closed")
            member = self._places[place]
            if member is None or not member.worker.alive:
                if member is not None:
                    self._end(member)
                if self._watch is None:
                    self._watch = asyncio.create_task(self._look())
                member = self._places[place] = PooledWorker(await Worker.start(self._hello, self._timeout))
                self._members.add(member)
            member.aboard += 1
            return member

    async def board_alone(self) -> PooledWorker:
        """A worker for one episode and no other, which ends with it. Raises WorkerError."""
        if self._closed:
            raise RuntimeError("the workers are closed")
        member = PooledWorker(await Worker.start(self._hello, self._timeout), aboard=1)
        self._members.add(member)
        if self._closed:
            self._end(member)
        return member

    def leave(self, member: PooledWorker) -> None:
        """One episode of this worker is over."""
        member.aboard -= 1
        member.served += 1
        self._end_if_idle(member)

    async def close(self) -> None:
        """End all workers, also one that is just being started."""
        self._closed = True
        for lock in self._locks:
            async with lock:
                pass
        if self._watch is not None:
            self._watch.cancel()
        for member in list(self._members):
            self._end(member)
        await asyncio.gather(*self._endings)

    async def _look(self) -> None:
        """Look at all workers again and again, also while a turn takes long."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for member in list(self._members):
                if member.worker.alive:
                    self._judge(member)

    def _judge(self, member: PooledWorker) -> None:
        held = held_below(member.worker.keeper)
        strain, name = self._limits.strain(held)
        if strain <= 1:
            return
        if reason := self._limits.excess(held):
            self.replaced[name] += 1
            member.worker.kill(f"{reason}: fix the leak, or raise env.limits.{name}")
        elif member.served and member in self._places:
            # One that is too large before its first episode has ended would only be followed by another such.
            self.replaced[name] += 1
            self._places[self._places.index(member)] = None
            self._end_if_idle(member)

    def _end_if_idle(self, member: PooledWorker) -> None:
        if not member.aboard and member not in self._places:
            self._end(member)

    def _end(self, member: PooledWorker) -> None:
        if member in self._members:
            self._members.remove(member)
            self._behind += member.worker.take_behind()
            task = asyncio.create_task(member.worker.close())
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)
