"""Supervised worker processes that run environments which may be slow, hang or crash.

A worker answers its requests one after another, in the order in which they came; where it has threads, those of each
episode. Every request has a number and a deadline by the monotonic clock, counted from when its turn came. A worker
that is late, dies or writes something that is not the answer expected is killed with everything it started, and every
request on it gets ``WorkerError``. A keeper between the two (``manyturn.envs.hosting.handle.process_reaper``) sees to
that, also when this process is killed.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from manyturn.envs.hosting.handle.deadline import where_it_hung
from manyturn.envs.hosting.handle.env_spec_message import KEEPER
from manyturn.envs.hosting.handle.messages import ERRORS, LIMIT, decode, encode

START_SECONDS = 60.0  # a worker's imports, on a machine that is busy
_SLACK_SECONDS = 0.5  # the worker times itself first, so that it can say where it hangs
_CLOSE_SECONDS = 6.0  # the environments of a worker have 5 s to close
_TAIL_BYTES = 4000


class WorkerError(RuntimeError):
    """The process that ran the environment is gone: a fault of the machinery, never a reward. Try the task again.

    Attributes:
        suspect: whether the process was busy with this request when it ended.
        bystander: whether it was busy with another, so that this episode was lost through no fault of its own.
    """

    def __init__(self, text: str, suspect: bool = False, bystander: bool = False):
        super().__init__(text)
        self.suspect, self.bystander = suspect, bystander


class _Pending(NamedTuple):
    id: int
    op: str
    seconds: float
    sent: float
    answer: "asyncio.Future[Any]"


class _Lane:
    """Requests that are answered one after another, and the timer of the one whose turn it is."""

    def __init__(self) -> None:
        self.pending = deque[_Pending]()
        self.since = 0.0  # by the monotonic clock, when the turn of the first of them came
        self.timer: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Worker:
    """One process. Made by ``start``; ``ask`` may be called by many coroutines at the same time.

    Attributes:
        keeper: id of the process below which the worker and everything it started are found.
        pid: the worker's own process id; the keeper's until the worker has reported it.
    """

    def __init__(self, process: asyncio.subprocess.Process, timeout: float, threads: bool):
        self.keeper = self.pid = process.pid
        self._process = process
        self._timeout = timeout
        self._threads = threads
        self._lanes = dict[int, _Lane]()  # by slot where each has a thread; else there is one
        self._late_lane: _Lane | None = None
        self._behind = 0.0
        self._last_id = -1
        self._reason: str | None = None
        self._has_suspect = False
        self._stderr = b""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, hello: Mapping[str, Any], timeout: float) -> "Worker":
        """Start a process.

        Args:
            hello: which environment: ``name``, ``kwargs``, ``wrappers``, ``register``, ``path``; ``threads``: one for
                each episode.
            timeout: seconds for one request.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *(*KEEPER, str(os.getpid())),
                *(sys.executable, "-P", "-m", "manyturn.envs.hosting.local.worker_main"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # what a terminal sends is meant for this process
                limit=LIMIT,
            )
        except OSError as error:
            raise WorkerError(f"no worker could be started: {error}") from error
        worker = cls(process, timeout, hello["threads"])
        try:
            worker.pid = await worker._send({**hello, "timeout": timeout}, "start", START_SECONDS, 0)
        except BaseException:
            worker.kill("it was given up while it started")
            assert worker._ending is not None
            await asyncio.shield(worker._ending)  # or the process outlives the event loop that would collect it
            raise
        return worker

    @property
    def alive(self) -> bool:
        return self._reason is None

    async def ask(self, op: str, slot: int, **fields: Any) -> Any:
        """The worker's answer to one request. Raises EnvError, Unsupported, WrapperMismatch or WorkerError."""
        message = {"id": self._last_id + 1, "op": op, "slot": slot, **fields}
        return await self._send(message, op, self._timeout + _SLACK_SECONDS, slot if self._threads else 0)

    def take_behind(self) -> float:
        """Seconds that requests waited behind others since the last call."""
        seconds, self._behind = self._behind, 0.0
        return seconds

    async def close(self) -> None:
        """End the process: its environments are closed first, if they do not hang."""
        if self.alive:
            self._reason = "it was closed"
            assert self._process.stdin is not None
            self._process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _CLOSE_SECONDS)
        self.kill("it was closed")
        assert self._ending is not None
        await self._ending

    def kill(self, reason: str) -> None:
        """Kill the worker and everything it started now; whoever waits is notified once the last words are in."""
        if self._reason is None:
            self._reason = reason
            self._has_suspect = any(lane.pending for lane in self._lanes.values())
            behind = (one for lane in self._lanes.values() for one in list(lane.pending)[1:])
            self._behind += sum(time.monotonic() - one.sent for one in behind)  # in vain
        if self._ending is None:
            self._signal(signal.SIGTERM)  # the keeper kills all that is below it
            self._ending = asyncio.create_task(self._end())

    async def _send(self, message: Mapping[str, Any], op: str, seconds: float, number: int) -> Any:
        line = encode(message)
        if not self.alive:
            raise WorkerError(f"worker {self.pid} is gone: {self._reason}", bystander=self._has_suspect)
        self._last_id += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        lane = self._lanes.setdefault(number, _Lane())
        lane.pending.append(_Pending(self._last_id, op, seconds, time.monotonic(), answer))
        if len(lane.pending) == 1:
            self._watch(lane)
        assert self._process.stdin is not None
        # Not awaited: the worker reads all the time, so what waits here is at most one action for each episode.
        if not self._process.stdin.is_closing():  # else the process is gone, and the reader is about to notice
            self._process.stdin.write(line)
        return await answer

    def _watch(self, lane: _Lane) -> None:
        """Time the request whose turn it is; those after it wait through no fault of their own."""
        lane.stop()
        if lane.pending:
            head, lane.since = lane.pending[0], time.monotonic()
            self._behind += lane.since - head.sent
            lane.timer = asyncio.get_running_loop().call_later(head.seconds, self._late, lane)

    def _late(self, lane: _Lane) -> None:
        # If this process itself was busy, the answer may be in the pipe unread: look once more.
        lane.timer = asyncio.get_running_loop().call_later(0.2, self._too_late, lane)

    def _too_late(self, lane: _Lane) -> None:
        head, self._late_lane = lane.pending[0], lane
        self.kill(f"no answer to {head.op!r} within {head.seconds - _SLACK_SECONDS:g} s")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._receive(decode(line))
            self.kill("it died")
        except (ValueError, LookupError, TypeError) as error:
            self.kill(f"it wrote something that is no answer ({error})")

    def _receive(self, reply: Mapping[str, Any]) -> None:
        heads = {lane.pending[0].id: lane for lane in self._lanes.values() if lane.pending}
        lane = heads.get(reply["id"])
        if lane is None:
            raise ValueError(f"an answer to request {reply['id']}, expected {', '.join(map(str, heads)) or 'none'}")
        answer = lane.pending.popleft().answer
        self._watch(lane)
        if answer.done():  # whoever asked has been cancelled
            return
        if "value" in reply:
            answer.set_result(reply["value"])
            return
        failure = reply["error"]
        error = ERRORS.get(failure["kind"], WorkerError)(failure["message"])
        error.add_note(f"In the worker process:\n{failure['trace']}")
        answer.set_exception(error)

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(65536):
            self._stderr = (self._stderr + chunk)[-_TAIL_BYTES:]

    async def _end(self) -> None:
        for lane in self._lanes.values():
            lane.stop()
        # Nothing here waits for long: a process that could not be killed may hold the pipes open for ever.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 1.0)
        if self._process.returncode is None or self._process.returncode < 0:
            self._force()
        await asyncio.wait(self._tasks, timeout=0.5)
        for task in self._tasks:
            task.cancel()
        tail = self._stderr.decode(errors="replace").strip()
        if place := where_it_hung(tail):
            error = f"worker {self.pid} is gone: no answer within {self._timeout:g} s, it hung at {place}"
        else:
            error = f"worker {self.pid} is gone: {self._reason}; exit status {self._process.returncode}"
            error += f"; its last words:\n{tail}" if tail else ""
        lanes = [lane for lane in self._lanes.values() if lane.pending]
        late = self._late_lane
        if place and late is None:  # the process has timed itself, and the oldest request was late
            late = min(lanes, key=lambda lane: lane.since, default=None)
        for lane in lanes:
            suspect = late in (None, lane)
            while lane.pending:
                answer = lane.pending.popleft().answer
                if not answer.done():
                    answer.set_exception(WorkerError(error, suspect, bystander=not suspect))
                suspect = False
        # Not public in asyncio; without it pipes that a process of the environment still holds outlive the event loop.
        self._process._transport.close()  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    def _force(self) -> None:
        """The keeper hangs or was killed: kill it, and with it the worker (by the kernel) and the rest of its group."""
        self._signal(signal.SIGKILL)
        if self.pid != self.keeper:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # Not by Process.send_signal, which may collect the exit status before the event loop does.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.keeper, number)
