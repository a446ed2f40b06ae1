"""Seats of episodes in this process or in supervised worker processes. The episode is the same in both.

async with open_seats("manyturn/Maze-v0", limit=8, workers=2) as seats:
    async with seats.take() as seat:
        step = await seat.reset(seats.tasks("train")[0], seed=1)
        while not step.ended:
            step = await seat.step(await seat.expert())
"""

import abc
import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from gymnasium.error import ResetNeeded

from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_description import EnvRecord
from manyturn.envs.hosting.handle.env_fingerprint import was_edited
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle, not_made
from manyturn.envs.hosting.handle.env_spec_message import hello_of
from manyturn.envs.hosting.handle.episode_snapshot import restore, take_snapshot
from manyturn.envs.hosting.handle.messages import step_from_wire, task_to_wire
from manyturn.envs.hosting.local.construction_check import try_out
from manyturn.envs.hosting.local.resource_use import USUAL, WorkerLimits
from manyturn.envs.hosting.local.shutdown_watchdog import watchdog
from manyturn.envs.hosting.local.worker import WorkerError
from manyturn.envs.hosting.local.worker_pool import PooledWorker, WorkerPool

T = TypeVar("T")

_CLOSE_SECONDS = 5.0
USUAL_TIMEOUT = 60.0  # seconds for one answer of an environment
RESET_FIRST = "no episode on this seat: call reset()"


class Seat(Protocol):
    """A place for one episode at a time.

    Every method raises EnvError if the environment raised and WorkerError if its process is gone. After either the
    episode is lost, and ``reset`` begins another with a fresh environment.
    """

    @property
    def name(self) -> str:
        """The environment's name."""
        ...

    async def reset(self, task: Task, seed: int) -> Answer: ...
    async def step(self, action: str) -> Answer: ...
    async def expert(self) -> str: ...

    async def snapshot(self) -> str:
        """The episode as it stands."""
        ...

    async def restore(self, snapshot: str) -> Answer:
        """Go back to a snapshot that was taken in this episode; the answer is the one that stood there.

        An environment without snapshots of its own plays the same actions again. Raises EnvError, too, where the
        situation differs from the one that was left.
        """
        ...


class Seats(abc.ABC):
    """A limited number of seats for one environment; use it in one event loop, with ``async with``.

    Args:
        record: of the environment.
        limit: episodes that may run together.
        processes: how many run them.

    Attributes:
        facts: name, instructions and abilities of the environment.
        identity: of the environment with its wrappers.
        wrappers: the turn-level rewards around it, as plain values.
        limit: episodes that may run together, which is less than was asked for where one process cannot hold as many.
        processes: how many processes run them, this one included where they run here.
        lister: the thread in which the environment that answers for the tasks was made, if it has one of its own; set
            by whoever made it there. Ask for tasks in it.
    """

    lister: Executor | None = None

    def __init__(self, record: EnvRecord, limit: int, processes: int = 1):
        if limit < 1 or processes < 1:
            raise ValueError(f"limit = {limit} and the number of processes, {processes}, must be at least 1")
        self.processes = processes
        self._record = record
        self.facts, self.identity, self.wrappers = record.facts, record.identity, record.wrappers
        self.limit = min(limit, (record.side_by_side or limit) * processes)
        self._places = asyncio.Semaphore(self.limit)
        self._closed = False

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split."""
        return self.facts.tasks(split)

    def of(self, task: Task) -> "Seats":
        """The seats of a task's environment: these, unless they are of several environments."""
        return self

    def figures(self) -> Mapping[str, float | str]:
        """Metrics since the last call."""
        return {}

    @abc.abstractmethod
    def take(self) -> AbstractAsyncContextManager[Seat]:
        """A seat, as soon as one is free."""

    async def close(self) -> None:
        """Close every environment and end every process."""
        self._closed = True

    async def __aenter__(self) -> "Seats":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def world(self) -> dict[str, str]:
        """Digests of what must be equal elsewhere for the same task, seed and actions to give the same episode."""
        return self._record.world()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"the seats of {self.facts.name} are closed")


def close_handle(handle: EnvHandle) -> None:
    """Close an environment; that it raised then must not cost what was played before."""
    try:
        handle.close()
    except (Exception, SystemExit) as error:
        warnings.warn(f"{handle.name} raised in close: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)


async def _heed_signals() -> None:
    """Let the event loop end what a signal asked to end: a policy without tokens never waits for anything."""
    if watchdog.heard:
        await asyncio.sleep(0)


class _InlineSeat:
    def __init__(self, make: "InlineSeats"):
        self._seats = make
        self._handle: EnvHandle | None = None
        self.name, self.live = make.facts.name, False

    async def reset(self, task: Task, seed: int) -> Answer:
        if self._handle is None:
            self._handle = self._seats.make_handle()
        self.live = True
        await _heed_signals()
        return self._or_lost(lambda handle: handle.reset(task, seed))

    async def step(self, action: str) -> Answer:
        await _heed_signals()
        return self._or_lost(lambda handle: handle.step(action))

    async def expert(self) -> str:
        return self._or_lost(EnvHandle.expert)

    async def snapshot(self) -> str:
        return self._or_lost(take_snapshot)

    async def restore(self, snapshot: str) -> Answer:
        return self._or_lost(lambda handle: restore(handle, snapshot))

    def close(self) -> None:
        self.live = False
        handle, self._handle = self._handle, None
        if handle is not None:
            close_handle(handle)

    def _or_lost(self, call: Callable[[EnvHandle], T]) -> T:
        """Answer of the environment; one that raised is not used again."""
        if not self.live or self._handle is None:
            raise ResetNeeded(RESET_FIRST)
        try:
            return call(self._handle)
        except EnvError:
            self.close()
            raise


class InlineSeats(Seats):
    """Environments in this process, made when first needed and used again. A slow one holds up everything here."""

    def __init__(
        self,
        name: str,
        kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[Any] = (),
        limit: int = 64,
    ):
        self._spare: EnvHandle | None = EnvHandle(name, kwargs, wrappers)  # answers for the tasks too
        super().__init__(EnvRecord.of(self._spare), limit)
        self._make = (name, kwargs, wrappers)
        self._free: list[_InlineSeat] = []

    def make_handle(self) -> EnvHandle:
        """A fresh environment; the one that answers for the tasks is the first. Raises EnvError."""
        if self._spare is not None:
            handle, self._spare = self._spare, None
            return handle
        try:
            return EnvHandle(*self._make)
        except (Exception, SystemExit) as error:
            raise not_made(self.facts.name, error) from error

    @contextlib.asynccontextmanager
    async def take(self) -> AsyncIterator[Seat]:
        async with self._places:
            self._check_open()
            seat = self._free.pop() if self._free else _InlineSeat(self)
            try:
                yield seat
            finally:
                seat.live = False
                if self._closed:
                    seat.close()
                else:
                    self._free.append(seat)

    async def close(self) -> None:
        for seat in self._free:
            seat.close()
        self._free.clear()
        if self._spare is not None:
            close_handle(self._spare)
        await super().close()


class _WorkerSeat:
    """A seat in a worker that it shares with others, or in one of its own for a task that is suspected.

    Args:
        name: of the environment.
        suspects: ids of tasks with which a worker was busy when it ended; shared by all seats. A task leaves them
            when an episode of it has come to its end.
    """

    def __init__(self, name: str, pool: WorkerPool, slot: int, place: int, suspects: set[str]):
        self.name, self._pool, self.slot, self.place, self._suspects = name, pool, slot, place, suspects
        self._task = ""
        self._member: PooledWorker | None = None
        self.live = False

    async def reset(self, task: Task, seed: int) -> Answer:
        self.leave()
        self._task = task.id
        alone = task.id in self._suspects
        self._member = await (self._pool.board_alone() if alone else self._pool.board(self.place))
        self.live = True
        return step_from_wire(await self._ask("reset", task=task_to_wire(task), seed=seed))

    async def step(self, action: str) -> Answer:
        answer = step_from_wire(await self._ask("step", action=action))
        if answer.ended:
            self._suspects.discard(self._task)
        return answer

    async def expert(self) -> str:
        return await self._ask("expert")

    async def snapshot(self) -> str:
        return await self._ask("snapshot")

    async def restore(self, snapshot: str) -> Answer:
        return step_from_wire(await self._ask("restore", snapshot=snapshot))

    def leave(self) -> None:
        """The episode is over; its worker may end."""
        self.live = False
        member, self._member = self._member, None
        if member is not None:
            self._pool.leave(member)

    async def _ask(self, op: str, **fields: Any) -> Any:
        if not self.live or self._member is None:
            raise ResetNeeded(RESET_FIRST)
        try:
            return await self._member.worker.ask(op, slot=self.slot, **fields)
        except (EnvError, WorkerError) as error:
            self.live = False
            if isinstance(error, WorkerError) and error.suspect:
                self._suspects.add(self._task)
            raise


class PooledSeats(Seats):
    """Environments in ``workers`` child processes, replaced when they hang, die, write nonsense or grow too large.

    A worker runs one turn at a time, so give as many workers as turns shall run at the same time. Of an environment
    that ``waits_outside`` it runs a turn of each of its episodes.

    Args:
        record: of the environment, which nothing opens in this process.
        hello: from ``hello_of``.
        limit, workers, timeout, limits: as for ``WorkerSeats``.
    """

    def __init__(
        self,
        record: EnvRecord,
        hello: Mapping[str, Any],
        limit: int = 64,
        workers: int = 4,
        timeout: float = USUAL_TIMEOUT,
        limits: WorkerLimits = USUAL,
    ):
        if timeout <= 0:
            raise ValueError(f"timeout = {timeout} must be above 0")
        super().__init__(record, limit, workers)
        self._pool = WorkerPool({**hello, "threads": record.waits_outside}, workers, timeout, limits)
        self._busy = [0] * workers
        suspects: set[str] = set()
        name = self.facts.name
        self._free = [_WorkerSeat(name, self._pool, slot, slot % workers, suspects) for slot in range(self.limit)]

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that take episodes now."""
        return self._pool.pids

    @property
    def replaced(self) -> Mapping[str, int]:
        """Number of workers replaced for exceeding each limit."""
        return self._pool.replaced

    def figures(self) -> Mapping[str, float | str]:
        """Seconds that turns have waited behind those of other episodes since the last call."""
        return {"behind_seconds": self._pool.take_behind()}

    @contextlib.asynccontextmanager
    async def take(self) -> AsyncIterator[Seat]:
        async with self._places:
            self._check_open()
            seat = min(self._free, key=lambda s: (self._busy[s.place], s.slot))
            self._free.remove(seat)
            self._busy[seat.place] += 1
            try:
                yield seat
            finally:
                seat.leave()
                self._busy[seat.place] -= 1
                self._free.append(seat)

    async def close(self) -> None:
        self._closed = True
        await self._pool.close()
        await super().close()


class WorkerSeats(PooledSeats):
    """Environments in ``workers`` child processes, and one in this process, which answers for the tasks.

    Args:
        name, kwargs, wrappers: as for ``EnvHandle``; kwargs and the tasks' params must be plain JSON values.
        limit: episodes that may run at the same time.
        workers: processes.
        timeout: seconds that one reset, one turn or one question to the expert may take.
        limits: what one worker may hold.
    """

    def __init__(
        self,
        name: str,
        kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[Any] = (),
        limit: int = 64,
        workers: int = 4,
        timeout: float = USUAL_TIMEOUT,
        limits: WorkerLimits = USUAL,
    ):
        self._handle = EnvHandle(name, kwargs, wrappers)  # also finds faults of name, kwargs and wrappers now
        if was_edited(type(self._handle.env.unwrapped)):
            close_handle(self._handle)
            raise ValueError(
                f"{portable_name(name)} was edited since this process loaded it, and its workers would load the new "
                "file: start the process once more"
            )
        record, hello = EnvRecord.of(self._handle), hello_of(name, kwargs, wrappers)
        super().__init__(record, hello, limit, workers, timeout, limits)

    async def close(self) -> None:
        self._closed = True
        await self._pool.close()
        if self.lister is None:
            close_handle(self._handle)
        else:
            closing = asyncio.get_running_loop().run_in_executor(self.lister, close_handle, self._handle)
            await asyncio.wait((closing,), timeout=_CLOSE_SECONDS)  # one that hangs ends with this process


def open_seats(
    name: str,
    kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[Any] = (),
    limit: int = 64,
    workers: int = 0,
    timeout: float = USUAL_TIMEOUT,
    limits: WorkerLimits = USUAL,
) -> Seats:
    """Seats in this process for ``workers`` 0, else in that many child processes.

    For child processes the environment is tried out first: one that hangs when it is made raises OneShotLost.

    What an environment waits for, such as a model user's endpoint, holds up everything in its process.
    """
    if workers == 0:
        return InlineSeats(name, kwargs, wrappers, limit)
    try_out(name, kwargs, timeout, limits)  # for this process has no deadline
    return WorkerSeats(name, kwargs, wrappers, limit, workers, timeout, limits)
