"""An environment behind an address: the socket, the server that listens on it, and the episodes behind it."""

import asyncio
import contextlib
import heapq
import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from socket import socket as Socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from manyturn.envs.hosting.local.seats import open_seats
from manyturn.envs.web.server_socket import listening
from manyturn.serving.episodes import Episodes
from manyturn.serving.middleware import MOST_BYTES, ByteBudget, Doorkeeper

SHORTEST_TOKEN = 16
HEAD_SECONDS = 30.0
_GRACE_SECONDS = 1.0
_CONNECTIONS = 2048  # of HTTP; as many WebSockets again


@dataclass(frozen=True)
class Listening:
    """Address to listen on, and the token that clients need.

    Args:
        host: an address of this machine.
        port: 0 takes any that is free.
        token: what requests have to carry; needed wherever other machines can reach the port.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None

    def __post_init__(self) -> None:
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise ValueError(
                f"a token has at least {SHORTEST_TOKEN} ASCII characters, such as openssl rand -hex 16 gives"
            )
        if not self.is_loopback and self.token is None:
            raise ValueError(
                f"--host {self.host} lets other machines in: give --token or MANYTURN_TOKEN as well, such as "
                "openssl rand -hex 16 gives"
            )
        if not 0 <= self.port <= 65_535:
            raise ValueError(f"a port is between 0 and 65535, 0 for any that is free: {self.port} does not")

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach it."""
        if self.host == "localhost":
            return True
        with contextlib.suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False


@dataclass(frozen=True)
class Served:
    """Served application.

    Args:
        env, env_args, wrappers: as for ``open_seats``.
        splits, seed, idle: as for ``Episodes``.
        limit: episodes that may be open at once.
        workers: processes that host the environment; 0 keeps it in this one, which then stands still while it answers.
        timeout: seconds that the environment may take for one answer, with workers.
    """

    env: str
    env_args: Mapping[str, Any]
    wrappers: Sequence[Any] = ()
    splits: Sequence[str] = ("train",)
    seed: int = 0
    idle: float = 1800.0
    limit: int = 64
    workers: int = 2
    timeout: float = 60.0


async def serve(
    served: Served, place: Listening, wire: Callable[[Episodes], ASGIApp], announce: Callable[[str], object]
) -> None:
    """Serve until cancelled.

    Args:
        wire: makes the application that speaks to clients.
        announce: called with the server's address, as soon as it listens.
    """
    env = (served.env, served.env_args, served.wrappers, served.limit, served.workers, served.timeout)
    lister = ThreadPoolExecutor(1, "tasks") if served.workers else None  # its environment never meets another thread
    with contextlib.closing(listening(place.port, place.host)) as socket:
        try:
            opening = asyncio.get_running_loop().run_in_executor(lister, open_seats, *env) if lister else None
            seats = open_seats(*env) if opening is None else await opening
            seats.lister = lister
            async with seats, Episodes(seats, served.splits, served.seed, served.idle) as episodes:
                await answer(wire(episodes), socket, place, announce)
        finally:
            if lister is not None:
                lister.shutdown(wait=False, cancel_futures=True)


async def answer(app: ASGIApp, socket: Socket, place: Listening, announce: Callable[[str], object]) -> None:
    """Let an application answer whoever may come, until cancelled.

    Args:
        socket: listens already, as ``place`` says.
        announce: called with the address.
    """
    host, port = socket.getsockname()[:2]
    address = f"{f'[{host}]' if ':' in host else host}:{port}"
    server = _Server(_config(Doorkeeper(app, place.token, address, place.is_loopback, _CONNECTIONS)))
    work = asyncio.create_task(server.serve([socket]))
    announce(f"http://{address}")
    try:
        await asyncio.shield(work)
    finally:
        server.should_exit = True
        await work


class _Server(uvicorn.Server):
    """Server that leaves signals to the command that runs it, and has room for who comes."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        """End the connections that have asked for nothing for the longest time, once half of all are open."""
        excess = len(self.server_state.connections) - _CONNECTIONS // 2
        if excess > 0:
            before = asyncio.get_running_loop().time() - _GRACE_SECONDS  # who has just come has had no time
            ours = (one for one in self.server_state.connections if isinstance(one, _Prompt | _Counted))
            waiting = (one for one in ours if one.is_waiting and one.since < before)
            for one in heapq.nsmallest(excess, waiting, key=lambda one: (one.has_begun, one.since)):
                one.transport.abort()
        return await super().on_tick(counter)


class _Prompt(H11Protocol):
    """Hangs up on who connects and sends no complete request: uvicorn itself would wait for ever.

    Attributes:
        since: when it connected, or had its last answer.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.since = self.loop.time()
        self._look_later(None)

    def on_response_complete(self) -> None:
        self.since = self.loop.time()
        super().on_response_complete()

    @property
    def has_begun(self) -> bool:
        """True once it has sent a request."""
        return self.cycle is not None

    @property
    def is_waiting(self) -> bool:
        """True if the client has all answers, or does not read the last one, and keeps the connection."""
        has_all = self.cycle is None or self.cycle.response_complete
        return (has_all or self.flow.write_paused) and not self.transport.is_closing()

    def _look_later(self, seen: object) -> None:
        self.loop.call_later(HEAD_SECONDS, self._look, seen)

    def _look(self, seen: object) -> None:
        if self not in self.connections or self.transport.is_closing():
            return  # gone, or a WebSocket by now
        if self.is_waiting and self.cycle is seen:
            self.transport.abort()  # what nobody reads would keep it open
        else:
            self._look_later(self.cycle)


class _Counted(WSProtocol):
    """Counts the bytes of messages that are unfinished or unread; where all clients' are too many, one is dropped.

    Attributes:
        since: when it became a WebSocket.
        is_waiting: whether it has sent no complete message yet.
        has_begun: False, as for a client that has sent no request.
    """

    has_begun = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.since, self.is_waiting = self.loop.time(), True
        app: Any = self.config.app  # a ``Doorkeeper``
        self._budget: ByteBudget = app.budget
        self._drop = transport.abort

    def handle_message(self, event: Any) -> None:
        self.is_waiting = self.is_waiting and not event.message_finished
        self._budget.take(self._drop, len(event.data.encode() if isinstance(event.data, str) else event.data))
        if not self.transport.is_closing():
            super().handle_message(event)

    async def receive(self) -> Any:
        message: Any = await super().receive()
        if message["type"] == "websocket.receive":
            data = message.get("bytes")
            self._budget.give(self._drop, len(message["text"].encode() if data is None else data))
        return message

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._budget.give(self._drop)


def _config(app: Doorkeeper) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Prompt,
        ws=_Counted,
        ws_max_size=MOST_BYTES,
        ws_per_message_deflate=False,  # a few bytes could unfold to any number before they are counted
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=2,
    )
