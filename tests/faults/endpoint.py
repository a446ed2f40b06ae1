"""A model behind the chat completions protocol on the loopback address: plays GuessNumber by halving, in its own words.

Every reply is computed from the whole conversation and names it by a hash, so a reply that was given to another
conversation, twice, or that somebody made up, can be told. As a program it needs nothing but Python, starts in a moment
and answers in two halves with a pause, so that it can be killed before, within and after an answer:

    python endpoint.py PORT
"""

import asyncio
import hashlib
import json
import re
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self

Message = dict[str, str]
Request = dict[str, Any]
Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def reply_to(messages: list[Message]) -> str:
    """The one right reply to a conversation."""
    said = [message["content"] for message in messages if message["role"] != "system"]
    low, high = map(int, re.findall(r"\d+", said[0])[:2])
    for verdict in said[2::2]:
        guess = int(re.findall(r"\d+", verdict)[0])
        low, high = (guess + 1, high) if "low" in verdict else (low, guess - 1)
    name = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
    return f"{name} <action>guess {(low + high) // 2}</action>"


def completion(text: Any, **more: Any) -> bytes:
    """The body of an answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 9}, **more}).encode()


def response(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A whole HTTP response; underscores in names of headers stand for hyphens."""
    told = {"Content-Length": str(len(body)), "Connection": "close"}
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode("latin-1") + body


async def sound(request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer as one should."""
    writer.write(response(200, completion(reply_to(request["messages"]))))


async def in_halves(request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer as one should, with a pause before the answer and another in its middle."""
    whole = response(200, completion(reply_to(request["messages"])))
    for part in (whole[: len(whole) // 2], whole[len(whole) // 2 :]):
        await asyncio.sleep(0.015)
        writer.write(part)
        await writer.drain()


async def listen(answer: Answer, port: int = 0) -> asyncio.Server:
    """Answer requests, one to a connection, for ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            assert length is not None
            await answer(json.loads(await reader.readexactly(int(length[1]))), writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the server stops
        finally:
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", port)


class ServerThread:
    """A server in a thread of its own, as a context manager.

    Attributes:
        url: where it is.
    """

    def __init__(self, answer: Answer):
        self._answer, self._ready = answer, threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="endpoint")
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive(), "the server did not stop"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        self._stop = asyncio.Event()
        server = await listen(self._answer)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()


async def _main(port: int) -> None:
    server = await listen(in_halves, port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
