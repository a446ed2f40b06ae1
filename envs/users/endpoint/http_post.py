"""One POST of JSON to an endpoint, within bounds of time and size, however slowly or endlessly it sends."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from manyturn.envs.users.endpoint.protocols.event_stream import HEAD, Assembly, BrokenStream, EventStream, is_stream

_CONNECT = 10.0  # seconds; a server that does not take the connection by then is not there

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class NoAnswer(Exception):
    """The request brought nothing that can be read; the next one may."""


class Unreachable(NoAnswer):
    """Nothing answers at the address."""


class TooSlow(NoAnswer):
    """The request was taken, and its time ran out."""


class Response(NamedTuple):
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    raw: bytes


@dataclass(frozen=True)
class Post:
    """A request.

    Attributes:
        body: sent as JSON.
        seconds: for the full exchange.
        longest: bytes of the longest answer, and of the longest event of a stream.
        assembly: what makes one answer of a stream of events, so long at most.
    """

    url: str
    body: Mapping[str, Any] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    seconds: float
    longest: int
    assembly: Callable[[int], Assembly]

    async def send(self) -> Response:
        """The answer, over a connection of its own, which leaves nothing open when the event loop ends.

        Raises:
            Unreachable: the request was not taken.
            TooSlow: there was no answer in time.
            NoAnswer: the answer cannot be read.
        """
        import httpx

        connect = min(_CONNECT, self.seconds)
        headers = {"Accept-Encoding": "identity", **self.headers}
        try:
            async with (
                asyncio.timeout(self.seconds),
                httpx.AsyncClient(
                    verify=_trust(*map(os.environ.get, _CERTIFICATES)),
                    timeout=httpx.Timeout(self.seconds, connect=connect),
                ) as client,
                client.stream("POST", self.url, json=self.body, headers=headers) as response,
            ):
                # A few kilobytes that are packed may be gigabytes, and unpacking them holds up the event loop.
                if (coding := response.headers.get("content-encoding", "identity")) != "identity":
                    raise NoAnswer(f"the answer comes as {coding:.40}, though it was asked for as it is")
                raw = await self._read(response.aiter_raw(), response.status_code)
        except TimeoutError as error:
            raise TooSlow(f"no answer within {self.seconds:g} s") from error
        except httpx.ConnectTimeout as error:
            raise Unreachable(f"no connection within {connect:g} s") from error
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise Unreachable(_cause(error)) from error
        # A redirect is not followed, but its address is parsed: a broken one is no HTTPError.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise NoAnswer(f"{type(error).__name__}: {error}") from error
        return Response(response.status_code, response.headers, raw)

    async def _read(self, chunks: AsyncIterator[bytes], status: int) -> bytes:
        """The body of an answer; one that comes as events is put together, also where it was not asked for so."""
        raw, events = bytearray(), None
        try:
            async for chunk in chunks:
                if events is None:
                    raw += chunk
                    if len(raw) > self.longest:
                        raise NoAnswer(f"the answer is longer than {self.longest} bytes")
                    if status != 200 or len(raw) - len(chunk) >= HEAD or not is_stream(bytes(raw[: HEAD * 2])):
                        continue
                    events, chunk = EventStream(self.assembly(self.longest), self.longest), bytes(raw)
                if events.feed(chunk):
                    break
            return bytes(raw) if events is None else events.end()
        except BrokenStream as fault:
            raise NoAnswer(str(fault)) from fault


@cache
def _trust(*places: str | None) -> Any:
    """Trusted certificates, read once for each pair of places: reading takes longer than a short answer."""
    import httpx

    return httpx.create_ssl_context()


def _cause(error: BaseException) -> str:
    """The operating system's error, which a connection that fails for every address of a host hides."""
    message, below = str(error), error
    while (inner := below.__cause__ or below.__context__) is not None:
        below = inner.exceptions[0] if isinstance(inner, BaseExceptionGroup) else inner
        if isinstance(below, OSError) and below.strerror and below.errno:
            message = os.strerror(below.errno) if below.strerror.startswith("Connect call") else below.strerror
    return f"{type(error).__name__}: {message}"
