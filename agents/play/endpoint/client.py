"""One request to an endpoint: what comes back, within bounds of time and size, or why nothing did."""

import asyncio
import os
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx

from manyturn.agents.play.endpoint.address import completions_url, shown
from manyturn.agents.play.endpoint.options import Endpoint

_LONGEST_ANSWER = 4 * 2**20  # bytes
_CONNECT = 10.0  # seconds; who does not take the connection by then is not there
_SECRET = 6  # characters; a shorter value of a header is no secret, and hiding it would garble messages


class NoAnswer(Exception):
    """The request brought nothing that can be read; the next one may."""


class Unreachable(NoAnswer):
    """Nothing answers at the address."""


class TooSlow(NoAnswer):
    """The request was taken, and its time ran out."""


class Response(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    raw: bytes


class Client:
    """Sends requests, each over a connection of its own, and not too many at once.

    A client for each request leaves nothing open when the event loop ends, and costs little next to a completion.

    Args:
        options: where the endpoint is, and its limits.
        base: its address.
        key: sent as a bearer token unless empty.

    Attributes:
        secrets: the key and the values of headers, those alone that are too long to be a word by chance.

    Raises:
        ValueError: address or key cannot be right.
    """

    def __init__(self, options: Endpoint, base: str, key: str):
        self.url = completions_url(base)
        if not (key.isascii() and key.isprintable()):
            raise ValueError("OPENAI_API_KEY holds characters that no key has")
        self._options = options
        own = {name: value.get_secret_value() for name, value in options.headers.items()}
        # A server that quotes a header may leave out its scheme, such as Bearer.
        typed = (key, *own.values(), *(value.partition(" ")[2].strip() for value in own.values()))
        self.secrets = tuple(secret for secret in typed if len(secret) >= _SECRET)
        self._hidden = (*self.secrets, *([key] if key else []))
        self._headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
        for name, value in own.items():
            self._headers = {n: v for n, v in self._headers.items() if n.lower() != name.lower()} | {name: value}
        self.has_key = any(name.lower() in ("authorization", "api-key", "x-api-key") for name in self._headers)
        self._tls = ssl.create_default_context()
        self._places: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    @property
    def where(self) -> str:
        """The endpoint's address, which holds no secrets."""
        return shown(self.url)

    async def post(self, body: Mapping[str, Any]) -> Response:
        """Send a request. Raises NoAnswer, and Unreachable if it was not taken."""
        limit = self._options.timeout
        patience = httpx.Timeout(limit, connect=min(_CONNECT, limit))
        try:
            async with (
                self._place(),
                asyncio.timeout(limit),
                httpx.AsyncClient(verify=self._tls, timeout=patience) as client,
                client.stream("POST", self.url, json=body, headers=self._headers) as response,
            ):
                # A few kilobytes that are packed may be gigabytes, and unpacking them holds up the event loop.
                if (coding := response.headers.get("content-encoding", "identity")) != "identity":
                    raise NoAnswer(f"the answer comes as {coding:.40}, though it was asked for as it is")
                raw = bytearray()
                async for chunk in response.aiter_raw():
                    raw += chunk
                    if len(raw) > _LONGEST_ANSWER:
                        raise NoAnswer(f"the answer is longer than {_LONGEST_ANSWER} bytes")
        except TimeoutError as error:
            raise TooSlow(f"no answer within {limit:g} s") from error
        except httpx.ConnectTimeout as error:
            raise Unreachable(f"no connection within {min(_CONNECT, limit):g} s") from error
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise Unreachable(self.short(_cause(error))) from error
        # A redirect is not followed, but its address is parsed: a broken one is no HTTPError.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise NoAnswer(self.short(f"{type(error).__name__}: {error}")) from error
        return Response(response.status_code, response.headers, bytes(raw))

    def short(self, text: str | bytes) -> str:
        """The beginning of a text on one line, without secrets and without what a terminal would obey."""
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        # Secrets are hidden first: cut in two they would not be found.
        for secret in self._hidden:
            text = text.replace(secret, "***")
        text = " ".join(text[:2000].split())
        text = "".join(char if char.isprintable() else "\ufffd" for char in text)
        return text[:300] + ("…" if len(text) > 300 else "")

    def _place(self) -> asyncio.Semaphore:
        # A semaphore belongs to an event loop, while a client may be used in several, one after the other.
        loop = asyncio.get_running_loop()
        if self._places is None or self._places[0] is not loop:
            self._places = (loop, asyncio.Semaphore(self._options.concurrency))
        return self._places[1]


def _cause(error: BaseException) -> str:
    """What the operating system said: a connection that fails for every address of a host hides it."""
    said, below = str(error), error
    while (inner := below.__cause__ or below.__context__) is not None:
        below = inner.exceptions[0] if isinstance(inner, BaseExceptionGroup) else inner
        if isinstance(below, OSError) and below.strerror and below.errno:
            said = os.strerror(below.errno) if below.strerror.startswith("Connect call") else below.strerror
    return f"{type(error).__name__}: {said}"
