"""Lets requests through to a served environment that may come, complete and in time; to be put around any ASGI app."""

import asyncio
import base64
import binascii
import secrets

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 8 * 2**20  # of a request: an action of a million characters, of which most are escaped
BODY_SECONDS = 30.0
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


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
    """

    def __init__(self, app: ASGIApp, token: str | None, address: str, is_loopback: bool, connections: int):
        self._app, self._token = app, None if token is None else token.encode()
        port = address.rpartition(":")[2]
        self._hosts = {address, *(f"{name}:{port}" for name in _LOOPBACK_NAMES)} if is_loopback else None
        self._most, self._sockets = connections, 0

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
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(receive)
        except TimeoutError:
            await _say(408, f"the request did not arrive within {BODY_SECONDS:g} s")(scope, receive, send)
            return
        if body is None:
            await _say(413, f"a request has at most {MOST_BYTES:,} bytes")(scope, receive, send)
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

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


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None if it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _say(status: int, text: str) -> PlainTextResponse:
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return PlainTextResponse(text, status, {"cache-control": "no-store", "connection": "close", **headers})
