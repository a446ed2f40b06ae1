"""A process that works for a driver elsewhere, over one WebSocket: for one driver at a time, and nobody else."""

import asyncio
import contextlib
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from manyturn.envs.hosting.handle.messages import encode
from manyturn.envs.hosting.remote.outbox import messages_in
from manyturn.terminal.escape import visible

T = TypeVar("T")

_HELLO_SECONDS = 10.0
_NONSENSE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class OneDriver(ABC):
    """Takes drivers, one after the other. What one leaves behind ends with its connection.

    Attributes:
        path: where they are taken.
    """

    path: ClassVar[str]

    def __init__(self) -> None:
        self._driver: tuple[str, asyncio.Task[Any] | None] | None = None

    def app(self) -> ASGIApp:
        """The application that speaks to drivers."""
        return Starlette(routes=[WebSocketRoute(self.path, self._take)])

    @abstractmethod
    async def serve(self, socket: WebSocket, hello: Mapping[str, Any]) -> None:
        """Work for a driver until it hangs up.

        Args:
            hello: what it said first.

        Raises:
            WebSocketDisconnect: it has hung up.
            ValueError, LookupError, TypeError, AttributeError: it says what no driver says.
        """

    async def _take(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                [hello] = messages_in(await socket.receive_bytes())
            driver = hello["driver"]
            if not isinstance(driver, str):
                raise TypeError("a driver is named by text")
        except (TimeoutError, WebSocketDisconnect, *_NONSENSE):
            await _hang_up(socket)
            return
        if self._driver is not None and self._driver[0] == driver:
            await _ended(self._driver[1])  # its other side is gone, and this side has not heard of it
        if self._driver is not None:
            await refuse(socket, "busy", "plays for another driver: wait until that has ended, or start another host")
            return
        self._driver = driver, asyncio.current_task()
        try:
            await self.serve(socket, hello)
        except (WebSocketDisconnect, *_NONSENSE) as error:
            if not isinstance(error, WebSocketDisconnect):
                print(visible(f"manyturn: a driver said what none says: {error}"), file=sys.stderr)
        finally:
            self._driver = None
            await _hang_up(socket)


async def beside(socket: WebSocket, work: Callable[[threading.Event], T], seconds: float) -> T:
    """Result of work in a thread, so that the event loop goes on, for as long as the driver waits for it.

    Args:
        work: ends soon once its event is set: the driver has hung up, this task is cancelled, or the time is over.
        seconds: that it may take.

    Raises:
        WebSocketDisconnect: the driver has hung up.
        ValueError: the driver did not wait for its answer.
        TimeoutError: the time is over.
        Exception: as the work raises.
    """
    ended = threading.Event()
    working = asyncio.create_task(asyncio.to_thread(work, ended))
    listening = asyncio.create_task(socket.receive())
    try:
        await asyncio.wait((working, listening), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if not listening.done():
            raise TimeoutError(f"it took more than {seconds:g} s")
        if listening.result()["type"] == "websocket.disconnect":
            raise WebSocketDisconnect
        raise ValueError("a driver waits for the answer to its first message")
    finally:
        ended.set()
        working.add_done_callback(lambda work: work.cancelled() or work.exception())  # nobody may be left to hear it
        listening.cancel()
        await asyncio.wait((listening,))


async def refuse(socket: WebSocket, kind: str, text: str) -> None:
    """Tell a driver why it is not worked for, and hang up."""
    print(visible(f"manyturn: refused a driver: {text}"), file=sys.stderr)
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_bytes(encode({"refused": kind, "message": text}))
    await _hang_up(socket)


async def _hang_up(socket: WebSocket) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await socket.close()


async def _ended(task: "asyncio.Task[Any] | None") -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait((task,))
