"""Environments in processes that somebody has started elsewhere, each of which plays many whole episodes.

Model, ledger and journal stay in this process; a host only resets and steps environments. When a host is gone, its
open episodes go on at another: the same task, seed and actions give the same episode, so they are played once more up
to where they were, and every answer is compared with the first one. So no policy is asked again, and weights are the
same to the bit as if nothing had happened. An episode that goes another way there is lost, and never a reward. One
whose environment raised is tried again by whoever plays it, at another host where there is one with room.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.text_env import Unsupported
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.contract.wrappers.reward_wrapper import WrapperMismatch
from manyturn.envs.hosting.handle.env_description import EnvRecord
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.envs.hosting.handle.messages import encode, task_to_wire
from manyturn.envs.hosting.local.seats import RESET_FIRST, Seat, Seats, close_handle
from manyturn.envs.hosting.local.worker import WorkerError
from manyturn.envs.hosting.remote.connection import HostLink, HostLost, HostRefused
from manyturn.envs.hosting.remote.host_protocol import action_from_wire, answer_from_wire, snapshot_from_wire

_MOVES = 3  # hosts that may be lost while they work on one episode, before it counts as an error
_PAUSE, _LONGEST_PAUSE = 0.2, 5.0  # seconds between two attempts to reach a host
_REMEMBERED = 4096  # episodes that failed somewhere, the last ones

_Attempted = tuple[str, int]  # a task and a seed, which all attempts at one episode share


class HostsLost(RuntimeError):
    """No host has room for an episode, and none came back in time: the run cannot go on."""


@dataclass(frozen=True)
class Hosts:
    """Addresses of hosts, and time limits for waiting.

    Args:
        urls: their addresses.
        token: that they ask for; None for none.
        wait: seconds until a host has to answer at the beginning, and until room has to be found later.
        silence: seconds without a sign of life after which a host that owes an answer counts as lost.
    """

    urls: Sequence[str]
    token: str | None = field(default=None, repr=False)
    wait: float = 60.0
    silence: float = 30.0


class HostedSeats(Seats):
    """Seats at hosts; ``async with`` connects to them.

    Args:
        name, kwargs, wrappers, limit: as for ``InlineSeats``; kwargs and the tasks' params must be plain JSON values.

    Raises:
        ValueError: kwargs are none.
    """

    def __init__(self, name: str, kwargs: Mapping[str, Any] | None, wrappers: Sequence[Any], limit: int, hosts: Hosts):
        self._handle = EnvHandle(name, kwargs, wrappers)
        super().__init__(EnvRecord.of(self._handle), limit, limit)  # how many a process holds, hosts know
        hello = {
            "env": portable_name(name),
            "args": dict(kwargs or {}),
            "wrappers": list(self.wrappers),
            "world": self.world(),
            "driver": secrets.token_hex(8),
        }
        try:
            greeting = encode(hello)
        except (TypeError, ValueError) as error:
            close_handle(self._handle)
            raise ValueError(f"env.args cannot be sent to a host: {error}: give plain JSON values") from None
        self._links = [HostLink(url, hosts.token, greeting, hosts.silence) for url in hosts.urls]
        self._wait, self._room = hosts.wait, asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self._free = [_HostedSeat(self) for _ in range(self.limit)]
        self._moved = 0
        self._failed = dict[_Attempted, list[HostLink]]()  # where attempts at an episode failed, the last one last
        self._slowest = dict[HostLink, tuple[float, str]]()  # seconds and task of each host's slowest answer to a turn
        self._over: str | None = None  # why no host will come back

    async def __aenter__(self) -> "HostedSeats":
        try:
            async with asyncio.TaskGroup() as group:
                for link in self._links:
                    group.create_task(self._reached(link))
            self.processes = sum(link.processes for link in self._links)
            if (room := sum(link.limit for link in self._links)) < self.limit:
                raise HostRefused(
                    f"{self.limit} episodes are to be open together, and the hosts hold {room}: start more of them or "
                    f"with a larger --limit, or set rollout.concurrency = {room}"
                )
        except BaseException as error:
            await self.close()
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from None
        self._keepers = [asyncio.create_task(self._keep(link)) for link in self._links]
        return self

    async def close(self) -> None:
        self._closed = True
        for keeper in self._keepers:
            keeper.cancel()
        if self._keepers:
            await asyncio.wait(self._keepers)
        await asyncio.gather(*(link.close() for link in self._links))
        close_handle(self._handle)
        await super().close()

    @contextlib.asynccontextmanager
    async def take(self) -> AsyncIterator[Seat]:
        async with self._places:
            self._check_open()
            seat = self._free.pop()
            try:
                yield seat
            finally:
                seat.leave()
                self._free.append(seat)

    def figures(self) -> dict[str, float | str]:
        """Metrics since the last call."""
        metrics: dict[str, float | str] = {
            "lost_hosts": sum(link.fault is not None for link in self._links),
            "moved_episodes": self._moved,
        }
        self._moved = 0
        for number, link in enumerate(self._links, 1):
            there, idle = link.occupancy.shares()
            metrics |= {f"host_{number}/episodes_there": there, f"host_{number}/idle_share": idle}
            if link in self._slowest:
                seconds, task = self._slowest.pop(link)
                metrics |= {f"host_{number}/slowest_env_seconds": seconds, f"host_{number}/slowest_task": task}
        return metrics

    # ---- which host -----------------------------------------------------------------------------------------

    async def place(self, episode: _Attempted) -> HostLink:
        """A host with room for an episode, which is counted there. Raises HostsLost.

        It is the one with most room, of those where the episode has not failed, or else has not for longest: a host
        whose disk is full fails at once, and always has room.
        """
        until = self.clock() + self._wait
        while True:
            able = [link for link in self._links if link.fault is None and link.occupancy.now < link.limit]
            if able:
                failed = self._failed.get(episode, [])
                since = {link: number for number, link in enumerate(failed, 1)}
                return min(able, key=lambda link: (since.get(link, 0), link.occupancy.now / link.limit))
            if self._over is not None and all(link.fault is not None for link in self._links):
                raise HostsLost(self._complaint())
            self._room.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._room.wait()
            except TimeoutError:
                raise HostsLost(self._complaint()) from None

    def has_room(self) -> None:
        """A place at a host has become free, or a host has come back."""
        self._room.set()

    def has_answered(self, link: HostLink, seconds: float, task: str) -> None:
        """A host has answered a turn."""
        self._slowest[link] = max(self._slowest.get(link, (0.0, "")), (seconds, task))

    def has_failed(self, episode: _Attempted, link: HostLink) -> None:
        """An attempt at an episode ended in an error at a host."""
        self._failed.setdefault(episode, []).append(link)
        if len(self._failed) > _REMEMBERED:
            del self._failed[next(iter(self._failed))]

    def has_moved(self) -> None:
        """An episode goes on at another host."""
        self._moved += 1

    def has_address(self, number: int, url: str) -> None:
        """A host is at this address now: what was at another one is gone, or soon will be."""
        link = self._links[number]
        if link.url != url:
            link.url = url
            link.lose("it was started at another address")

    def expect_no_more(self, why: str) -> None:
        """Nobody starts hosts again: once none of them answers, the run need not wait."""
        self._over = why
        self.has_room()

    async def _reached(self, link: HostLink) -> None:
        """Connect to a host that may be about to start. Raises HostRefused, and HostsLost where it does not answer."""
        until, pause = self.clock() + self._wait, _PAUSE
        while True:
            try:
                return await link.connect()
            except HostLost as error:
                if self.clock() + pause > until:
                    raise HostsLost(f"{error}; {self._start_one()}") from None
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _keep(self, link: HostLink) -> None:
        """Connect to a host once more whenever it was lost."""
        while True:
            await link.ended.wait()
            pause = _PAUSE
            while link.fault is not None:
                try:
                    await link.connect()
                except (HostLost, HostRefused) as error:  # another may be started there yet
                    link.fault = str(error).removeprefix(f"{link.url}: ")
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
            self.has_room()

    def _complaint(self) -> str:
        states = "; ".join(
            f"{link.url}: {link.fault or f'holds {link.occupancy.now} of {link.limit}'}" for link in self._links
        )
        why = self._over or f"no host had room for an episode within {self._wait:g} s"
        return f"{why} ({states}): {self._go_on()}"

    def _start_one(self) -> str:
        """Advice on a host that does not answer."""
        return "is it running? manyturn host --port N starts one, and placement.hosts names it"

    def _go_on(self) -> str:
        """Advice when the hosts are gone."""
        return (
            "start hosts at these addresses and go on with manyturn train --resume RUN; placement.hosts in its "
            "config.toml may name others"
        )

    def clock(self) -> float:
        """Seconds."""
        return asyncio.get_running_loop().time()


class _HostedSeat:
    """A seat at whichever host has room when an episode begins, and at another once that is lost."""

    def __init__(self, seats: HostedSeats):
        self._seats, self.name = seats, seats.facts.name
        self._history = list[tuple[str, dict[str, Any], str]]()  # what was asked so far, and the digest of each answer
        self._place: tuple[HostLink, int, int] | None = None  # a host, its connection's number, the episode's there
        self._moves, self.live = 0, False
        self._episode: _Attempted = "", 0

    async def reset(self, task: Task, seed: int) -> Answer:
        self.leave()
        self._history, self._moves, self.live = [], 0, True
        self._episode = task.id, seed
        return await self._ask("reset", task=task_to_wire(task), seed=seed)

    async def step(self, action: str) -> Answer:
        return await self._ask("step", action=action)

    async def expert(self) -> str:
        return await self._ask("expert")

    async def snapshot(self) -> str:
        return await self._ask("snapshot")

    async def restore(self, snapshot: str) -> Answer:
        return await self._ask("restore", snapshot=snapshot)

    def leave(self) -> None:
        """The episode is over."""
        self.live = False
        self._step_down()

    def _step_down(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            link, times, episode = place
            link.leave(episode, times)
            self._seats.has_room()

    async def _ask(self, op: str, **fields: Any) -> Any:
        """The answer of the environment, wherever it is by now. Raises what a ``Seat`` does."""
        if not self.live:
            raise ResetNeeded(RESET_FIRST)
        try:
            while True:
                try:
                    if self._place is None or not self._place[0].is_as(self._place[1]):
                        await self._move()
                    began = self._seats.clock()
                    answer, state = await self._answer(op, fields)
                    break
                except HostLost as error:
                    self._step_down()
                    self._moves += 1
                    if self._moves > _MOVES:
                        raise WorkerError(f"{self._moves} hosts were lost while they worked on it: {error}") from None
        except (EnvError, WorkerError):
            if self._place is not None:
                self._seats.has_failed(self._episode, self._place[0])
            self.leave()
            raise
        if op == "restore":  # how the episode came here no longer counts
            del self._history[1:]
        if op != "snapshot":
            self._history.append((op, fields, state))
        if op == "step" and self._place is not None:
            self._seats.has_answered(self._place[0], self._seats.clock() - began, self._episode[0])
        return answer

    async def _answer(self, op: str, fields: Mapping[str, Any]) -> tuple[Any, str]:
        """The answer and its digest. Raises HostLost, also for what is no answer."""
        assert self._place is not None
        link, _, episode = self._place
        plain = await link.ask(op, episode=episode, **fields)
        try:
            parse = action_from_wire if op == "expert" else snapshot_from_wire if op == "snapshot" else answer_from_wire
            return parse(plain), digest(plain)
        except (ValueError, TypeError) as error:
            link.lose(f"its answer to {op} is none: {error}")
            raise HostLost(f"{link.url}: its answer to {op} is none: {error}") from None

    async def _move(self) -> None:
        """Begin at a host that has room, and play there what was played before. Raises HostLost or WorkerError."""
        self._step_down()
        link = await self._seats.place(self._episode)
        self._place = link, link.times, link.begin()
        if self._history:
            self._seats.has_moved()
        for number, (op, fields, expected) in enumerate(self._history):
            try:
                _, state = await self._answer(op, fields)
            except (EnvError, Unsupported, WrapperMismatch) as error:
                raise self._strayed(number, f"raised {error}") from error
            if state != expected:
                raise self._strayed(number, "answered something else")

    def _strayed(self, number: int, how: str) -> WorkerError:
        return WorkerError(
            f"its host was lost, and at another {self.name} {how} at step {number} of the same episode: it is not "
            "determined by task, seed and actions, see manyturn check"
        )
