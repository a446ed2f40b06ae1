"""Hosts of environments and samplers in processes of their own, a wire that can be cut, and hosts that lie."""

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Self

from websockets.asyncio.server import ServerConnection, serve

from manyturn.envs.hosting.wire import decode, encode
from manyturn.serving.env_host import Hosting, host
from manyturn.serving.sampler import sample
from manyturn.serving.server import Listening


class HostProcess:
    """``manyturn host`` as a user starts it.

    Args:
        words: options, and the environment.
        port: of an earlier one, to take its place; 0 for any.
    """

    command = "host"

    def __init__(self, *words: str, port: int = 0):
        command = [sys.executable, "-P", "-m", "manyturn", self.command, *words, "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._url = ""

    @property
    def url(self) -> str:
        """Its address, once it listens."""
        if not self._url:
            assert self.process.stdout is not None
            self._url = self.process.stdout.readline().partition(" at ")[2].split()[0]
        return self._url

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """End it as Ctrl-C does; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.communicate()
        return self.process.returncode


class SamplerProcess(HostProcess):
    """``manyturn sampler`` likewise."""

    command = "sampler"


@contextlib.contextmanager
def host_processes(count: int, *words: str) -> Iterator[list[HostProcess]]:
    """So many hosts; they start side by side."""
    hosts = [HostProcess(*words) for _ in range(count)]
    try:
        yield hosts
    finally:
        for one in hosts:
            one.end()


@contextlib.contextmanager
def sampler_processes(count: int, *words: str) -> Iterator[list[HostProcess]]:
    """So many samplers; they start side by side."""
    samplers = [SamplerProcess("--device", "cpu", *words) for _ in range(count)]
    try:
        yield list(samplers)
    finally:
        for one in samplers:
            one.end()


@contextlib.asynccontextmanager
async def sampling(count: int = 1, token: str | None = None) -> AsyncIterator[list[str]]:
    """Addresses of so many samplers in this event loop."""
    addresses = [asyncio.get_running_loop().create_future() for _ in range(count)]
    work = [asyncio.create_task(sample("cpu", Listening(token=token), found.set_result)) for found in addresses]
    try:
        yield [await found for found in addresses]
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


@contextlib.asynccontextmanager
async def hosting(count: int = 1, token: str | None = None, **options: Any) -> AsyncIterator[list[str]]:
    """Addresses of so many hosts in this event loop; options as for ``Hosting``."""
    addresses = [asyncio.get_running_loop().create_future() for _ in range(count)]
    settings = Hosting(**{"workers": 0, **options})
    work = [asyncio.create_task(host(settings, Listening(token=token), found.set_result)) for found in addresses]
    try:
        yield [await found for found in addresses]
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


class Wire:
    """Passes bytes on to a host on this machine, as an async context manager, until it is cut or held up.

    Attributes:
        passed: bytes so far, of both directions.
        watch: called after each piece of bytes.
        joined: called when a connection is made.
        alter: makes of a piece what is passed on.
        connections: how many are open.
        listener: where it listens already; None: at any port that is free.
    """

    def __init__(self, url: str, listener: socket.socket | None = None):
        self._target, self.passed, self._listener = int(url.rpartition(":")[2]), 0, listener
        self._writers = set[asyncio.StreamWriter]()
        self._flows = asyncio.Event()
        self._flows.set()
        self.watch: Callable[[], object] = lambda: None
        self.joined: Callable[[], object] = lambda: None
        self.alter: Callable[[bytes], bytes] = lambda piece: piece

    async def __aenter__(self) -> Self:
        listener = self._listener or socket.create_server(("127.0.0.1", 0))
        self._server = await asyncio.start_server(self._join, sock=listener)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        self.flow()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        return len(self._writers) // 2

    def cut(self) -> None:
        """End all connections without a word; others may be made."""
        for writer in self._writers:
            writer.transport.abort()

    def hold(self) -> None:
        """Pass nothing on."""
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        self.joined()
        await asyncio.gather(self._carry(reader, far_writer, True), self._carry(far_reader, writer, False))
        self._writers -= {writer, far_writer}

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: bool) -> None:
        first = there
        with contextlib.suppress(OSError):
            while piece := await reader.read(2**16):
                if first:  # a host on this machine answers to its own address alone
                    piece, first = piece.replace(b":%d" % self._port, b":%d" % self._target), False
                await self._flows.wait()
                writer.write(self.alter(piece))
                await writer.drain()
                self.passed += len(piece)
                self.watch()
        writer.close()


Lie = Callable[[dict[str, Any]], list[Any]]


@contextlib.asynccontextmanager
async def lying(lie: Lie, greeting: Mapping[str, Any] | None = None) -> AsyncIterator[str]:
    """The address of what looks like a host.

    Args:
        lie: frames that answer a message: bytes, or what is to be a message; None hangs up.
    """

    async def speak(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(encode(greeting or {"limit": 64, "processes": 1}))
        async for frame in socket:
            assert isinstance(frame, bytes)
            for line in frame.splitlines(keepends=True):
                for said in lie(decode(line)):
                    if said is None:
                        socket.transport.abort()
                        return
                    await socket.send(said if isinstance(said, bytes | str) else encode(said))

    async with serve(speak, "127.0.0.1", 0, compression=None) as server:
        yield f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
