"""A guard in front of a server of vLLM's, which anybody who reached it could give other weights.

vLLM's own key is asked for on its public routes only, and not on those by which weights arrive and replies are broken
off. This guard is asked on every route.
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from manyturn.agents.engine.vllm.access import token

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class TokenGuard:
    """A layer around an ASGI application (vLLM's ``--middleware``). Without a token it only keeps web pages out."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]):
        self._app, self._asked = app, f"Bearer {token()}".encode() if token() else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and self._lets_in(dict(scope["headers"]))):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"the token is missing or another one"})
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _lets_in(self, headers: dict[bytes, bytes]) -> bool:
        if b"origin" in headers:  # a page in somebody's browser, which reaches this machine's own addresses
            return False
        return self._asked is None or hmac.compare_digest(headers.get(b"authorization", b""), self._asked)
