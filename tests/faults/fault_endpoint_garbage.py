"""An endpoint that answers with errors, nonsense, too much, too slowly or not at all: no transcript holds any of it."""

import asyncio
import gzip
import socket
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from endpoint import Request, ServerThread, completion, response, sound
from guessing import CONFIG, SAMPLING, endpoint, open_files, play_round, seats
from tally import Tally

from manyturn.agents.play.endpoint.policy import OpenAIPolicy
from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 30, 200
_SHARE = 0.35  # of the requests that meet a fault
_WRONG = completion("nonsense <action>guess 1</action>")
_PIECE = b'{"choices": [{"index": 0, "delta": {"content": "nonsense <action>guess 1</action>"}}]}'
_HEAD, _BODY = response(200, _WRONG).split(b"\r\n\r\n")


async def _drips(writer: asyncio.StreamWriter) -> None:
    """A byte now and then, until the client gives up."""
    for byte in response(200, _WRONG):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


async def _silence(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(1.0)


async def _reset(writer: asyncio.StreamWriter, sent: bytes = b"") -> None:
    writer.write(sent)
    await writer.drain()
    # With no time to linger, closing resets the connection.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _reset_in_the_body(writer: asyncio.StreamWriter) -> None:
    await _reset(writer, response(200, _WRONG)[:-20])


GARBAGE: dict[str, bytes | Callable] = {
    "too many requests": response(429, b'{"error": "slow down"}', Retry_After="0"),
    "too many until tomorrow": response(429, b"", Retry_After="86400"),
    "too many until a date that is none": response(429, b"", Retry_After="Mon, 01 Jan 2024 00:00:00 +99999999999"),
    "internal error": response(500, b"<html>oops</html>"),
    "bad gateway": response(502),
    "overloaded": response(503, b"", Retry_After="soon"),
    "moved to nowhere": response(302, b"", Location="http:nowhere"),
    "no content": response(204),
    "no JSON": response(200, b"Sure! Here is"),
    "half a JSON": response(200, _WRONG[: len(_WRONG) // 2]),
    "error under status 200": response(200, b'{"error": {"message": "overloaded"}}'),
    "error beside a reply": response(200, completion("nonsense", error={"code": 502})),
    "broken off by the server": response(200, _WRONG.replace(b'"stop"', b'"error"')),
    "no choices": response(200, b'{"choices": []}'),
    "choices that are none": response(200, b'{"choices": "nonsense"}'),
    "no call": response(200, completion(None).replace(b'"stop"', b'"tool_calls"')),
    "parts that are no text": response(200, completion([{"type": "image_url", "image_url": {"url": "nonsense"}}])),
    "a number": response(200, completion(7)),
    "null": response(200, b"null"),
    "deep": response(200, b'[{"a":' * 100_000),
    "a long number": response(200, b'{"choices": %s}' % (b"9" * 5000)),
    "ten megabytes": response(200, completion("nonsense" * 1_250_000)),
    "ten megabytes squeezed": response(200, gzip.compress(completion("x" * 10_000_000)), Content_Encoding="gzip"),
    "not squeezed": response(200, _WRONG, Content_Encoding="gzip"),
    "no UTF-8": response(200, b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "a stream that breaks off": response(200, b"data: %s\n\n" % _PIECE, Content_Type="text/event-stream"),
    "less than promised": response(200, _WRONG, Content_Length="5000"),
    "bad chunks": _HEAD.replace(b"Content-Length", b"Transfer-Encoding: chunked\r\nX") + b"\r\n\r\nzz\r\n" + _BODY,
    "no HTTP": b"\x16\x03\x01\x00\xff" * 40,
    "endless head": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000,
    "nothing": b"",
    "reset": _reset,
    "reset in the body": _reset_in_the_body,
    "drips": _drips,
    "silence": _silence,
}


class Garbling:
    """Answers as one should, save for a share of the requests: those get each kind of garbage in turn.

    Which ones is decided by the request's own seed and how often it has come, so not by the order of arrival.
    """

    def __init__(self, count: int, seed: int):
        self.count, self.seed = count, seed
        self.sent: Counter[str] = Counter()
        self._came: Counter[int] = Counter()
        self._order = generator("kinds of garbage", seed).permutation(sorted(GARBAGE)).tolist()

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self._came[request["seed"]] += 1
        draw = generator("garbage", self.seed, request["seed"], self._came[request["seed"]]).random()
        # The very first request shows that there is an endpoint at all.
        if draw >= _SHARE or self.sent.total() >= self.count or self._came.total() == 1:
            return await sound(request, writer)
        kind = self._order[self.sent.total() % len(self._order)]
        self.sent[kind] += 1
        garbage = GARBAGE[kind]
        if isinstance(garbage, bytes):
            writer.write(garbage)
        else:
            await garbage(writer)


def run(count: int, seed: int, folder: Path) -> Tally:
    garbling, before = Garbling(count, seed), open_files()
    with ServerThread(garbling) as server:
        tally = asyncio.run(_play(garbling, server.url))
    tally.injected = garbling.sent.total()
    tally.survived = tally.injected - min(tally.injected, tally.lost + tally.duplicated + tally.misattributed)
    tally.orphans += max(0, open_files() - before)
    return tally


async def _play(garbling: Garbling, url: str) -> Tally:
    tally, number = Tally(), 0
    policy = OpenAIPolicy("halving", CONFIG, SAMPLING, endpoint(url))
    async with seats() as opened:
        while garbling.sent.total() < garbling.count:
            tally += await play_round(opened, policy, garbling.seed, number)
            number += 1
    return tally
