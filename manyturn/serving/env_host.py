"""A process that hosts environments for a driver elsewhere, by ``manyturn host``; see
``hosting/remote/host_protocol.py``.

One driver at a time plays here. Its episodes end with its connection, and nothing is kept for the next one. The driver
names the environment, its arguments and its wrappers. What may be built is decided by whoever starts the host: an
environment named there, or one that is registered on this machine, with arguments that its class declares harmless.
"""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from manyturn.envs.contract.registration.env_registry import guarded_arguments, is_only_by_hand, maker_of
from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.envs.hosting.handle.env_fingerprint import was_edited
from manyturn.envs.hosting.handle.env_spec_message import hello_of
from manyturn.envs.hosting.handle.messages import encode, error_kind, step_to_wire, task_from_wire
from manyturn.envs.hosting.local.construction_check import examine
from manyturn.envs.hosting.local.resource_use import USUAL, WorkerLimits
from manyturn.envs.hosting.local.seats import USUAL_TIMEOUT, InlineSeats, PooledSeats, Seat, Seats
from manyturn.envs.hosting.local.worker import WorkerError
from manyturn.envs.hosting.remote.host_protocol import PATH, error_to_wire
from manyturn.envs.hosting.remote.outbox import Outbox, messages_in
from manyturn.envs.hosting.remote.tcp_keepalive import keep_alive
from manyturn.envs.web.server_socket import listening
from manyturn.serving.server import Listening, answer
from manyturn.serving.websocket_worker import OneDriver, beside, refuse
from manyturn.terminal.command_exit import line_of
from manyturn.terminal.escape import visible

_OPEN_SECONDS = 90.0  # to start a process on a busy machine, besides what the environment takes


@dataclass(frozen=True)
class Hosting:
    """Limits of a host.

    Args:
        env: the one environment that it builds; None for any that is registered.
        args: arguments that its driver may name although its class does not declare them harmless, with these values.
        limit: episodes open at once.
        workers, timeout, limits: as for ``open_seats``.

    Raises:
        ValueError: there is no such environment, it takes no such arguments, or they are for its driver to name.
    """

    env: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    limit: int = 512
    workers: int = 2
    timeout: float = USUAL_TIMEOUT
    limits: WorkerLimits = USUAL

    def __post_init__(self) -> None:
        if self.limit < 1 or self.workers < 0 or self.timeout <= 0:
            raise ValueError("--limit is at least 1, --workers at least 0, --timeout above 0")
        if self.args and self.env is None:
            raise ValueError("--env.args are those of an environment: name it too")
        if self.env is None:
            return
        self.permitted(portable_name(self.env), self.args)
        if idle := sorted(self.args.keys() - guarded_arguments(self.env, self.args)):
            raise ValueError(
                f"--env.args.{idle[0]} has no effect, since its run may name it: leave it out, and give it to the run"
            )

    def permitted(self, name: str, args: Mapping[str, Any]) -> str:
        """The name by which an environment is made here. Raises ValueError for one that is not to be built.

        From the first call on its file is not to change.
        """
        if self.env is not None:
            if name != portable_name(self.env):
                raise ValueError(f"hosts {portable_name(self.env)} alone, and not {name:.200}")
            name = self.env
        elif is_only_by_hand(name):
            raise ValueError(f"builds registered environments alone: name it there, as in manyturn host {name:.200}")
        kind = maker_of(name, args)
        if isinstance(kind, type) and was_edited(kind):  # this process has the old class, and workers load the new one
            raise ValueError(f"loaded {portable_name(name)} before it was edited: start the host once more")
        for word in guarded_arguments(name, args):
            if word not in self.args or self.args[word] != args[word]:
                raise ValueError(
                    f"takes env.args.{word} from its own command line alone, since it may name a file, program or key "
                    f"there: start it with the environment's name and --env.args.{word}, with the same value"
                )
        return name

    def opened(self, name: str, args: Mapping[str, Any], wrappers: Sequence[Any], ended: threading.Event) -> Seats:
        """Seats of an environment that is permitted; with workers it is opened in other processes only.

        Args:
            ended: set by another thread that wants no more.

        Raises:
            Exception: as ``permitted`` and ``examine`` do.
        """
        name = self.permitted(name, args)
        if self.workers == 0:
            return InlineSeats(name, args, wrappers, self.limit)
        hello = hello_of(name, args, wrappers)
        record = examine(hello, self.timeout, self.limits, ended)
        return PooledSeats(record, hello, self.limit, self.workers, self.timeout, self.limits)


async def host(hosting: Hosting, place: Listening, announce: Callable[[str], object]) -> None:
    """Host environments until cancelled.

    Args:
        announce: called with the address, as soon as it listens.
    """
    with contextlib.closing(listening(place.port, place.host)) as socket:
        keep_alive(socket)
        await answer(EnvHost(hosting).app(), socket, place, announce)


class EnvHost(OneDriver):
    """Plays episodes for one driver after the other."""

    path = PATH

    def __init__(self, hosting: Hosting):
        super().__init__()
        self._hosting = hosting

    async def serve(self, socket: WebSocket, hello: Mapping[str, Any]) -> None:
        name, args, wrappers, world = (hello[word] for word in ("env", "args", "wrappers", "world"))
        if not (isinstance(name, str) and isinstance(args, dict) and isinstance(wrappers, list)):
            raise TypeError("a driver names an environment, its arguments and its wrappers")
        hosting = self._hosting
        try:
            opened = partial(hosting.opened, name, args, wrappers)
            seats = await beside(socket, opened, _OPEN_SECONDS + 2 * hosting.timeout)
        except WebSocketDisconnect:
            raise
        except (Exception, SystemExit) as error:
            await refuse(socket, "env", f"cannot host the environment: {line_of(error)}")
            return
        async with seats:
            here = seats.world() if hosting.workers else await asyncio.to_thread(seats.world)
            if other := [word for word in here.keys() | world.keys() if here.get(word) != world.get(word)]:
                differ = " and ".join(sorted(other))
                await refuse(socket, "world", f"has another version of the environment ({differ}): give both the same")
                return
            await socket.send_bytes(encode({"limit": seats.limit, "processes": seats.processes}))
            async with _Aboard(seats, socket) as aboard:
                await aboard.listen()


class _Aboard:
    """The episodes of one driver, as an async context manager that ends them."""

    def __init__(self, seats: Seats, socket: WebSocket):
        self._seats, self._socket = seats, socket
        self._outbox = Outbox(socket.send_bytes, lambda why: None)  # whoever reads hears of it too
        self._episodes = dict[int, tuple[asyncio.Queue[dict[str, Any]], asyncio.Task[None]]]()
        self._leaving = set[asyncio.Task[None]]()

    async def __aenter__(self) -> "_Aboard":
        await self._outbox.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._leaving, *(task for _, task in self._episodes.values())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._outbox.__aexit__()

    async def listen(self) -> None:
        """Take messages until the driver hangs up. Raises WebSocketDisconnect, and others for what is no message."""
        while True:
            for message in messages_in(await self._socket.receive_bytes()):
                self._heed(message)
                await self._outbox.room()

    def _heed(self, message: dict[str, Any]) -> None:
        number, op = message["id"], message["op"]
        if op == "ping":
            self._outbox.put({"id": number, "value": None})
            return
        episode = message["episode"]
        if op == "leave":
            _, task = self._episodes.pop(episode, (None, None))
            if task is not None:  # its driver may leave one of which it could ask nothing
                task.cancel()
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)
            return
        if op == "reset" and episode not in self._episodes:
            if len(self._episodes) >= self._seats.limit:
                raise ValueError(f"more than {self._seats.limit} episodes")
            inbox = asyncio.Queue[dict[str, Any]]()
            self._episodes[episode] = inbox, asyncio.create_task(self._episode(inbox))
        self._episodes[episode][0].put_nowait(message)

    async def _episode(self, inbox: "asyncio.Queue[dict[str, Any]]") -> None:
        async with self._seats.take() as seat:
            while True:
                message = await inbox.get()
                try:
                    self._outbox.put({"id": message["id"], "value": await _answered(seat, message)})
                except Exception as error:
                    if not (isinstance(error, WorkerError) or error_kind(error)):
                        print(visible(f"manyturn: {type(error).__name__}: {error}"), file=sys.stderr)
                    self._outbox.put({"id": message["id"], "error": error_to_wire(error)})


async def _answered(seat: Seat, message: Mapping[str, Any]) -> Any:
    match message["op"]:
        case "reset":
            return step_to_wire(await seat.reset(task_from_wire(message["task"]), message["seed"]))
        case "step":
            return step_to_wire(await seat.step(message["action"]))
        case "expert":
            return await seat.expert()
        case "snapshot":
            return await seat.snapshot()
        case "restore":
            return step_to_wire(await seat.restore(message["snapshot"]))
    raise ValueError(f"there is no question {message['op']!r:.40}")
