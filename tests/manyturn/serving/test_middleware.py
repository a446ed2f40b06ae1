"""A server that would answer whoever asks: other machines and pages, bodies without end, clients that never finish."""

import asyncio
import base64
import contextlib
import json
import os
import random
import socket
from importlib.util import find_spec

import httpx
import pytest

if any(find_spec(name) is None for name in ("mcp", "uvicorn", "wsproto")):
    pytest.skip("no server: pip install 'manyturn[serve]'", allow_module_level=True)

import httpx2
from elsewhere import hosting
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from manyturn.serving import middleware, server

pytestmark = pytest.mark.versions

UPGRADE = (
    b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
TOKEN = "0123456789abcdef-a-token"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "--host 0.0.0.0 lets other machines in: give --token or MANYTURN_TOKEN"),
        (("--host", "::"), "lets other machines in"),
        (("--host", "192.0.2.1", "--token", TOKEN), "cannot be had"),
        (("--token", "short"), "at least 16 ASCII characters"),
        (("--port", "70000"), "between 0 and 65535"),
        (("--split", "exam", "--held-out"), "has no split 'exam'"),
        (("--idle", "0"), "idle = 0.0 must be above 0"),
        (("--wrappers", "nonsense"), "wrappers is no TOML list"),
        (("--limit", "0"), "limit = 0"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(command, tools, monkeypatch, words, said):
    monkeypatch.delenv("MANYTURN_TOKEN", raising=False)
    ended = command("serve", tools.faulty, "--as", "mcp", "--workers", "0", *words)
    assert ended.code == 2 and said in ended.err and ended.err.count("\n") == 1 and not ended.out


def test_a_token_is_asked_for_and_may_be_a_password(tools):
    async def play():
        async with tools.serving(tools.faulty, "mcp", token=TOKEN) as (url, _):
            basic = base64.b64encode(f"user:{TOKEN}".encode()).decode()
            refused = [
                "",
                "Bearer",
                f"Bearer {TOKEN}x",
                f"Bearer {TOKEN[:-1]}",
                f"Basic {TOKEN}",
                "Basic é",
                "Digest x",
            ]
            async with httpx.AsyncClient(headers=HEADERS) as client:
                for line in refused:
                    headers = {"authorization": line.encode()} if line else {}
                    answer = await client.post(url, json=PING, headers=headers)
                    assert answer.status_code == 401 and TOKEN not in answer.text, line
                twice = [("authorization", f"Bearer {TOKEN}"), ("authorization", f"Bearer {TOKEN}")]
                assert (await client.post(url, json=PING, headers=twice)).status_code == 401
                for line in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
                    assert (await client.post(url, json=PING, headers={"authorization": line})).status_code == 200
            with_token = httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"})
            async with with_token, Client(streamable_http_client(url, http_client=with_token)) as client:
                assert not (await client.call_tool("begin", {})).is_error

    asyncio.run(play())


def test_pages_of_others_reach_nothing(tools):
    async def play():
        async with tools.serving(tools.faulty, "mcp") as (url, _), httpx.AsyncClient(headers=HEADERS) as client:
            port = httpx.URL(url).port
            for headers, status in [
                ({"host": f"evil.example:{port}"}, 421),
                ({"host": "127.0.0.1:1"}, 421),
                ({"origin": "http://evil.example"}, 403),
                ({"origin": "null"}, 403),
                ({"origin": f"http://127.0.0.1:{port}", "host": f"localhost:{port}"}, 403),
                ({"origin": f"http://127.0.0.1:{port}"}, 200),
                ({"host": f"localhost:{port}"}, 200),
            ]:
                assert (await client.post(url, json=PING, headers=headers)).status_code == status, headers

    asyncio.run(play())


def test_garbage_is_answered_and_plays_nothing(tools):
    rng = random.Random(0)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "begin", "arguments": {}}}
    bodies = [os.urandom(n) for n in (0, 1, 100, 10_000)]
    bodies += [b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000, b"null", b"[]", b'"x"', b'{"jsonrpc":"2.0"}']
    for _ in range(200):
        text = bytearray(json.dumps(call).encode())
        for _ in range(rng.randrange(1, 6)):
            text[rng.randrange(len(text))] = rng.randrange(256)
        bodies.append(bytes(text))

    async def play():
        async with (
            tools.serving(tools.faulty, "mcp", limit=1000) as (url, held),
            httpx.AsyncClient(headers=HEADERS) as client,
        ):
            for body in bodies:
                answer = await client.post(url, content=body)
                assert answer.status_code < 500, (body[:100], answer.text)
            assert held.open <= 200
            assert (await client.post(url, content=b"x" * (middleware.MOST_BYTES + 1))).status_code == 413
            with contextlib.suppress(httpx.TransportError):  # the server has hung up before all was sent
                assert (await client.post(url, content=_each(b"x" * 2**20 for _ in range(20)))).status_code == 413
            assert (await client.get(url.removesuffix("/mcp"))).status_code == 404
            assert (await client.post(url, json=PING)).status_code == 200

    asyncio.run(play())


async def _each(parts):
    for part in parts:
        yield part


@pytest.mark.deep
@pytest.mark.parametrize("wire", ["openenv", "mcp", "nemo-gym", "ors", "host"])
def test_clients_that_drip_headers_or_stay_silent_leave_room_for_who_sends_a_request(tools, monkeypatch, wire):
    """2,100 half-sent heads took all connections, so that nobody else got an answer for half a minute, and so on."""
    monkeypatch.setattr(server, "_CONNECTIONS", 64)
    monkeypatch.setattr(server, "_GRACE_SECONDS", 0.1)

    async def drip(port: int, head: bytes) -> None:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                for place in range(0, len(head), size := len(head) if head.endswith(b"\r\n\r\n") else 1):
                    writer.write(head[place : place + size])
                    await writer.drain()
                    await asyncio.sleep(0.2)
                await asyncio.sleep(60)
            await asyncio.sleep(3)

    async def play() -> None:
        async with served(tools, wire) as url:
            port = httpx.URL(url).port
            head = f"POST /reset HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx: ".encode() + b"x" * 1000
            stream = f"GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: text/event-stream\r\n\r\n".encode()
            path = "host" if wire == "host" else "ws"
            silent = f"GET /{path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n".encode() + UPGRADE
            hostile, codes = [], []
            for words in (silent, stream, head):
                hostile += [asyncio.create_task(drip(port, words)) for _ in range(70)]
                await asyncio.sleep(1)
            for _ in range(20):
                with contextlib.suppress(httpx.TransportError):
                    async with httpx.AsyncClient(timeout=10) as client:
                        codes.append((await client.get(f"http://127.0.0.1:{port}/nowhere")).status_code)
                await asyncio.sleep(0.05)
            for one in hostile:
                one.cancel()
            assert codes.count(404) > 10, codes

    asyncio.run(play())


@contextlib.asynccontextmanager
async def served(tools, wire):
    """Address of a host of environments or of a server in this process, without workers."""
    if wire == "host":
        async with hosting() as [url]:
            yield url
    else:
        async with tools.serving(tools.faulty, wire) as (url, _):
            yield url


def test_who_never_finishes_a_request_is_hung_up_on(tools, monkeypatch):
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)

    def ending(port, said):
        """What comes back until the server hangs up, which has to be soon."""
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.settimeout(5)
            connection.sendall(said)
            heard = b""
            while more := connection.recv(4096):
                heard += more
            return heard

    async def play():
        async with tools.serving(tools.faulty, "mcp") as (url, _):
            port = httpx.URL(url).port
            head = f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n".encode()
            assert await asyncio.to_thread(ending, port, b"") == b""
            assert await asyncio.to_thread(ending, port, head) == b""
            assert b" 408 " in await asyncio.to_thread(ending, port, head + b"content-length: 100\r\n\r\n{")

    asyncio.run(play())
