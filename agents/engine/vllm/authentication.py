"""Access to a server of vLLM's: the token, where it can be left out, and the guard in front of the server."""

import hmac
import ipaddress
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from manyturn.envs.contract.options.options import ConfigError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

VARIABLE = "MANYTURN_VLLM_TOKEN"
_SHORTEST = 16
_MAKE = f'{VARIABLE}=$(python -c "import secrets; print(secrets.token_urlsafe())")'


def token() -> str:
    """The token of this environment; empty without one. Raises ConfigError for one that is easily guessed."""
    secret = os.environ.get(VARIABLE, "")
    if secret and (len(secret) < _SHORTEST or not (secret.isascii() and secret.isprintable()) or " " in secret):
        raise ConfigError(f"{VARIABLE} is no token: take {_SHORTEST} letters and digits or more, such as {_MAKE}")
    return secret


def check_reach(host: str, what: str) -> None:
    """Raises ConfigError for a place that others can reach, unless there is a token."""
    if not token() and not is_loopback(host):
        raise ConfigError(
            f"{what} can be reached from other machines, whose users could give it other weights: set the same "
            f"{VARIABLE} for it and for the learner, such as {_MAKE}"
        )


def is_loopback(host: str) -> bool:
    """True if only this machine can reach a host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def endpoint_of(address: str) -> str:
    """A server's address without a slash at its end. Raises ValueError if it is none.

    >>> endpoint_of(" http://127.0.0.1:8000/")
    'http://127.0.0.1:8000'
    """
    address = address.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound, parts = False, urlsplit("")
    if not sound or parts.path or parts.query or parts.fragment:
        raise ValueError(f"{address!r} is no address of a server: write http://HOST:PORT")
    if parts.username or parts.password:
        raise ValueError(f"an address holds no user and no password: leave them out, and set {VARIABLE}")
    return address


def host_of(address: str) -> str:
    """The host of an address.

    >>> host_of("http://[::1]:8000")
    '::1'
    """
    return urlsplit(address).hostname or ""


class TokenGuard:
    """A layer around an ASGI application (vLLM's ``--middleware``). Without a token it only keeps web pages out.

    Anybody who reached the server could give it other weights. vLLM asks for its own key only on its public routes, and
    not on those by which weights arrive and replies are broken off; this guard asks on every route.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]):
        self._app, self._authorization = app, f"Bearer {token()}".encode() if token() else None

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
        if b"origin" in headers:  # a web page in a browser, which reaches this machine's own addresses
            return False
        return self._authorization is None or hmac.compare_digest(
            headers.get(b"authorization", b""), self._authorization
        )
