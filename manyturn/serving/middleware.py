"""Lets requests through to a served environment that may come, complete and in time; to be put around any ASGI app."""

import asyncio
import base64
import binascii
import secrets
from collections.abc import Callable
from functools import partial

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 8 * 2**20  # of a request: an action of a million characters, of which most are escaped
BODY_SECONDS = 30.0
MOST_WAITING = 256 * 2**20  # bytes of all messages together that are unfinished or unread
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class ByteBudget:
    """Memory for unfinished and unread messages of all clients together: where it is full, the largest is dropped.

    Args:
        most: bytes.
    """

    def __init__(self, most: int):
        self._most, self._held = most, dict[Callable[[], object], int]()

    def take(self, drop: Callable[[], object], count: int) -> None:
        """Count bytes that have come; what holds most is dropped until there is room, which may be this one.

        Args:
            drop: ends the connection that they are of, and stands for it here.
        """
        self._held[drop] = self._held.get(drop, 0) + count
        while sum(self._held.values()) > self._most:
            largest = max(self._held, key=self._held.__getitem__)
            del self._held[largest]
            largest()

    def give(self, drop: Callable[[], object], count: int | None = None) -> None:
        """Bytes of a connection are gone; None: all."""
        if drop in self._held:
            self._held[drop] -= self._held[drop] if count is None else count
            if self._held[drop] <= 0:
                del self._held[drop]


class Doorkeeper:
    """Refuses foreign pages, wrong tokens, and bodies that are too large or too slow.

    Args:
        app: what is guarded.
        token: asked for as ``Authorization: Bearer TOKEN``, or as the password of ``http://user:TOKEN@host``, which
            clients that cannot set headers take; None asks for nothing.
        address: of this server, with its port.
        is_loopback: whether it listens on this machine alone. Then other names than this machine's are refused, for a
            foreign page may have its own name resolve to 127.0.0.1.
        connections: how many WebSockets may be open.

    Attributes:
        budget: of bytes; bodies are counted here, messages of WebSockets where they arrive.
    """

    def __init__(self, app: ASGIApp, token: str | None, address: str, is_loopback: bool, connections: int):
        self._app, self._token = app, None if token is None else token.encode()
        port = address.rpartition(":")[2]
        self._hosts = {address, *(f"{name}:{port}" for name in _LOOPBACK_NAMES)} if is_loopback else None
        self._most, self._sockets = connections, 0
        self.budget = ByteBudget(MOST_WAITING)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._request(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refused := self._refusal(Headers(scope=scope)):
            await _say(*refused)(scope, receive, send)
            return
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS) as limit:
                drop = partial(limit.reschedule, 0.0)
                try:
                    fits = await _fill(body, receive, partial(self.budget.take, drop))
                finally:
                    self.budget.give(drop)
        except TimeoutError:
            await _say(408, f"the request did not arrive within {BODY_SECONDS:g} s")(scope, receive, send)
            return
        if not fits:
            await _say(413, f"a request has at most {MOST_BYTES:,} bytes")(scope, receive, send)
            return
        waiting: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(Headers(scope=scope))
        if refused is None and self._sockets >= self._most:
            refused = 503, "as many connections are open as there may be"
        if refused is not None:
            status, text = refused
            if "websocket.http.response" in scope.get("extensions", {}):
                head = [(b"content-type", b"text/plain; charset=utf-8")]
                await send({"type": "websocket.http.response.start", "status": status, "headers": head})
                await send({"type": "websocket.http.response.body", "body": text.encode()})
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": text})
            return
        self._sockets += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._sockets -= 1

    def _refusal(self, headers: Headers) -> tuple[int, str] | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or (self._hosts is not None and hosts[0] not in self._hosts):
            return 421, "use the address that the server printed"
        if any(origin.partition("://")[2] != hosts[0] for origin in origins):
            return 403, "requests of other pages are refused"
        if self._token is not None:
            given = [word for line in headers.getlist("authorization") if (word := _token_in(line)) is not None]
            if len(given) != 1 or not secrets.compare_digest(given[0], self._token):
                return 401, "the token is missing or wrong: send the header Authorization: Bearer TOKEN"
        return None


def _token_in(authorization: str) -> bytes | None:
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return None
    return None


async def _fill(body: bytearray, receive: Receive, count: Callable[[int], object]) -> bool:
    """Receive a full body; False if it is too large."""
    while True:
        message = await receive()
        piece = message.get("body", b"") if message["type"] == "http.request" else b""
        count(len(piece))
        body += piece
        if len(body) > MOST_BYTES:
            return False
        if not message.get("more_body", False):
            return True


def _say(status: int, text: str) -> PlainTextResponse:
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return PlainTextResponse(text, status, {"cache-control": "no-store", "connection": "close", **headers})
