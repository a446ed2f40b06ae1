"""Hostile messages of eleven kinds to a server of drivers, from a process of their own.

    python -m benchmarks.serving.hostile_messages URL COUNT

Each message is an attack by a client that needs no more than the address. A client that is turned away because another
driver plays comes again until its message is read. The last line says how each message ended: refused by a sentence,
hung up on, or cut off by this client, which leaves what is half-sent open for a while.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import tempfile
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.handle.messages import decode, encode
from manyturn.envs.hosting.local.seats import InlineSeats

MAZE = "manyturn/Maze-v0"
_MOST_SECONDS = 60.0  # that a message which is sent waits for its end
_BUSY, _BUSY_SECONDS, _PAUSE_SECONDS = "refused: busy", 1800.0, 0.2  # for which a busy server is asked again, how often
_OPEN = 64  # connections that are left half-sent
_AT_ONCE = 6

Attack = Callable[["Attacker", int], Awaitable[str]]


class Attacker:
    """Sends hostile messages to one server.

    Args:
        url: ``http://``, host and port.
        folder: for a FIFO that nobody writes to.

    Attributes:
        turned_away: attempts that a busy server left unread.
    """

    def __init__(self, url: str, folder: Path):
        self.turned_away = 0
        self.host, _, port = url.removeprefix("http://").partition(":")
        self.port, self.fifo = int(port), folder / "fifo"
        os.mkfifo(self.fifo)
        self.world = InlineSeats(MAZE).world()
        self._left, self._drivers = deque[Any](), itertools.count()

    def hello(self, env: str = MAZE, **args: Any) -> bytes:
        """A first message that is well formed."""
        driver = f"hostile {next(self._drivers)}"  # one that comes back under a name ends what it had
        return encode({"env": env, "args": args, "wrappers": [], "world": self.world, "driver": driver})

    @contextlib.asynccontextmanager
    async def socket(self):
        """A WebSocket to the server."""
        place = f"ws://{self.host}:{self.port}/host"
        async with connect(
            place, proxy=None, max_size=None, open_timeout=None, close_timeout=0.2, compression=None, ping_interval=None
        ) as socket:
            yield socket

    async def ending_of(self, *messages: bytes | str) -> str:
        """The server's end of messages sent one after the other: ``refused: KIND`` or ``hung up: CLOSE CODE``.

        A server that works for another driver is asked again until it reads on, and the message is unread where that
        takes too long. Where several messages are sent, the first is a good beginning, and its answer is waited for.
        """
        stop = time.monotonic() + _BUSY_SECONDS
        while True:
            async with asyncio.timeout(_MOST_SECONDS), self.socket() as socket:
                ending = await _last_words(socket, messages)
            if ending != _BUSY:
                return ending
            self.turned_away += 1
            if time.monotonic() > stop:
                return "unread"
            await asyncio.sleep(_PAUSE_SECONDS)

    async def raw(self, data: bytes, *, leave: bool) -> str:
        """Bytes on a bare connection, which stays open where it is left half-sent."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        if leave:
            self.keep(writer)
            return "left half-sent"
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(_MOST_SECONDS):
                await reader.read(1 << 16)
        writer.close()
        return "hung up"

    def keep(self, connection: Any, sending: "asyncio.Task[None] | None" = None) -> None:
        """Keep a connection open, and what still sends on it, until so many others have come."""
        self._left.append((connection, sending))
        if len(self._left) > _OPEN:
            self.drop()

    def drop(self) -> None:
        """End the oldest of these connections."""
        connection, sending = self._left.popleft()
        if sending is not None:
            sending.cancel()
        (connection.transport.abort if sending is not None else connection.close)()

    def close(self) -> None:
        """End all of them."""
        while self._left:
            self.drop()


async def _last_words(socket: ClientConnection, messages: Sequence[bytes | str]) -> str:
    *beginning, last = messages
    try:
        for message in beginning:
            await socket.send(message)
            if refusal := await _refusal(socket):
                return refusal
        await socket.send(last)
        while not (refusal := await _refusal(socket)):
            pass
    except ConnectionClosed as end:
        return f"hung up: {end.rcvd.code}" if end.rcvd else "hung up"
    except WebSocketException:
        return "hung up"
    return refusal


async def _refusal(socket: ClientConnection) -> str:
    """The refusal in the next answer; empty if it is none."""
    frame = await socket.recv()
    word = decode(frame).get("refused") if isinstance(frame, bytes) else None
    return f"refused: {word}" if word else ""


async def sizes(attacker: Attacker, number: int) -> str:
    """One message of 1 to 300 MB."""
    return await attacker.ending_of(b"x" * (2**20 * (1, 9, 40, 300)[number % 4]))


async def paths(attacker: Attacker, number: int) -> str:
    """Arguments that name files and programs of the host."""
    place = ("/etc/shadow", "/proc/self/environ", "../../x", "/root/.ssh/id_rsa")[number % 4]
    env, args = (
        ("manyturn/Search-v0", {"corpus": place, "questions": place}),
        ("manyturn/Talk-Booking-v0", {"user": {"kind": "replay", "file": place}}),
        ("manyturn/Software-v0", {"source": f"tasks:{place}"}),
        ("manyturn/AppWorld-v0", {"python": place}),
        (f"{place}:World", {}),
    )[number % 5]
    return await attacker.ending_of(attacker.hello(env, **args))


async def pipes(attacker: Attacker, number: int) -> str:
    """Arguments that name a FIFO that nobody writes to."""
    place = str(attacker.fifo)
    user = {"kind": "replay", "file": place}
    if number % 2:
        return await attacker.ending_of(attacker.hello("manyturn/Talk-Booking-v0", user=user))
    return await attacker.ending_of(attacker.hello("manyturn/Search-v0", corpus=place, questions=place))


async def devices(attacker: Attacker, number: int) -> str:
    """Arguments that name a device without an end."""
    place = ("/dev/zero", "/dev/urandom", "/dev/full")[number % 3]
    return await attacker.ending_of(attacker.hello("manyturn/Search-v0", corpus=place, questions=place))


async def layers(attacker: Attacker, number: int) -> str:
    """Harmless arguments with numbers that no machine can build."""
    env, args = (
        ("manyturn/Treasure-v0", {"rooms": 3_000_000, "objects": 3_000_000, "quest": 3_000_000}),
        ("manyturn/Cooking-v0", {"rooms": 10**9, "ingredients": 10**9}),
        (MAZE, {"max_turns": 10**30}),
        ("manyturn/Desk-v0", {"users": 10**9}),
        (MAZE, {"difficulty": "x" * 5_000_000}),
    )[number % 5]
    return await attacker.ending_of(attacker.hello(env, **args))


async def half_sent(attacker: Attacker, number: int) -> str:
    """Heads, bodies and messages that begin and never end."""
    if number % 3 == 0:
        return await attacker.raw(b"GET /host HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 1000, leave=True)
    if number % 3 == 1:
        head = f"POST /host HTTP/1.1\r\nHost: {attacker.host}:{attacker.port}\r\nContent-Length: 8000000\r\n\r\n"
        return await attacker.raw(head.encode() + b"z" * 2_000_000, leave=True)
    place = f"ws://{attacker.host}:{attacker.port}/host"
    socket = await connect(place, proxy=None, open_timeout=_MOST_SECONDS, close_timeout=0.2)
    began = asyncio.Event()

    async def pieces():
        yield b"x" * 4_000_000
        began.set()
        await asyncio.Event().wait()

    sending = asyncio.create_task(socket.send(pieces()))
    await asyncio.wait_for(began.wait(), 20)
    attacker.keep(socket, sending)
    return "left half-sent"


async def garbage(attacker: Attacker, number: int) -> str:
    """Bytes that are no HTTP."""
    data = generator("garbage", number).bytes(200_000)
    return await attacker.raw(data + b"\r\n\r\n", leave=False)


async def binary(attacker: Attacker, number: int) -> str:
    """Messages of random bytes, after a good beginning and without one."""
    data = generator("binary", number).bytes(100_000)
    return await attacker.ending_of(*((attacker.hello(),) if number % 2 else ()), data)


async def deep(attacker: Attacker, number: int) -> str:
    """JSON of 100,000 levels, and numbers of as many digits."""
    nested = b'{"driver": ' + (b"[", b'{"a":')[number % 2] * 100_000 + b"\n"
    digits = b'{"driver": "d", "args": ' + b"9" * 100_000 + b"}\n"
    return await attacker.ending_of(
        *((attacker.hello(),) if number % 3 == 0 else ()), (nested, digits)[number % 4 // 2]
    )


async def nonsense(attacker: Attacker, number: int) -> str:
    """Well-formed messages of the wire that make no sense, after a good beginning."""
    message = (
        {"id": 1, "op": "step", "episode": 3, "action": "north"},
        {"id": 1, "op": "reset", "episode": [1], "task": {}, "seed": 0},
        {"id": {"a": 1}, "op": "reset", "episode": 1, "task": {"id": "x" * 10**6}, "seed": -1},
        {"op": "ping"},
        {"id": 1, "op": "reset", "episode": 1, "task": None, "seed": "y"},
    )[number % 5]
    return await attacker.ending_of(attacker.hello(), encode(message), b"{\n")


async def headers(attacker: Attacker, number: int) -> str:
    """Requests with foreign names, huge heads, or two lengths."""
    head = (
        "GET /host HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n",
        f"GET /{'a' * 70_000} HTTP/1.1\r\nHost: 127.0.0.1:{attacker.port}\r\n\r\n",
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{attacker.port}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{attacker.port}\r\nContent-Length: -1\r\n\r\n",
    )[number % 4]
    return await attacker.raw(head.encode(), leave=False)


ATTACKS: dict[str, Attack] = {
    "sizes": sizes,
    "paths": paths,
    "FIFOs": pipes,
    "devices": devices,
    "layers": layers,
    "half-sent": half_sent,
    "garbage": garbage,
    "binary": binary,
    "deep JSON": deep,
    "nonsense": nonsense,
    "headers": headers,
}


async def attack(url: str, count: int) -> dict[str, Any]:
    """``endings`` of so many messages, kind -> ending -> number, and attempts ``turned_away``; some go on at once."""
    endings, places = {kind: Counter[str]() for kind in ATTACKS}, asyncio.Semaphore(_AT_ONCE)
    with tempfile.TemporaryDirectory() as folder:
        attacker = Attacker(url, Path(folder))

        async def one(number: int) -> None:
            kind = list(ATTACKS)[number % len(ATTACKS)]
            async with places:
                try:
                    ending = await ATTACKS[kind](attacker, number // len(ATTACKS))
                except TimeoutError:
                    ending = "no end in a minute"
                except (OSError, WebSocketException, EOFError):
                    ending = "hung up"
            endings[kind][ending] += 1

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(one(number))
        attacker.close()
    return {"endings": {kind: dict(counts) for kind, counts in endings.items()}, "turned_away": attacker.turned_away}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(attack(options.url, options.count))))
