"""A driver's connection to one process elsewhere: ``manyturn host`` or ``manyturn sampler``.

Every question has a number, and its answer comes over the connection on which it was asked, or never. A connection on
which anything else came, or nothing for too long while an answer was due, is closed: what a host says later reaches
nobody. The same address may be connected to once more, to a host that has kept nothing of what was before.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.websocket_redirects import SingleConnection
from manyturn.envs.hosting.handle.messages import LIMIT
from manyturn.envs.hosting.remote.host_protocol import PATH, error_from_wire
from manyturn.envs.hosting.remote.occupancy import Occupancy
from manyturn.envs.hosting.remote.outbox import Outbox, messages_in
from manyturn.envs.hosting.remote.tcp_keepalive import keep_alive

_CONNECT_SECONDS = 10.0
_HELLO_SECONDS = 120.0  # the host imports the environment, and tries it out in a process of its own
_CLOSE_SECONDS = 1.0
_BUSY = "busy"  # the refusal that may pass


class HostLost(RuntimeError):
    """A host does not answer, or not as a host does: what it was asked may or may not have been done there."""


class HostRefused(ConfigError):
    """A host will not play this run's episodes; the text says why."""


class HostLink:
    """Questions to one host; use it in one event loop.

    Args:
        url: ``http://`` or ``https://``, host and port.
        token: that the host asks for; None for none.
        hello: a message that names the environment, and what must be equal there.
        silence: seconds without a word after which a host that owes an answer counts as lost.
        path: where such a process answers.
        read_error: makes an error of what came in place of an answer; raises ValueError, KeyError or TypeError.

    Attributes:
        url: may be set to where the host is now; it holds from the next connection on.
        limit: episodes that it holds; known once it has answered.
        processes: how many processes host them there.
        occupancy: episodes that are there.
        fault: why it cannot be asked now; None while it can.
        times: how often it has been connected to.
        ended: set while it cannot be asked.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        hello: bytes,
        silence: float,
        path: str = PATH,
        read_error: Callable[[Mapping[str, Any]], Exception] = error_from_wire,
    ):
        self.url, self.limit, self.processes, self.times = url, 0, 0, 0
        self.occupancy = Occupancy(time.monotonic)
        self.fault: str | None = "it was not asked yet"
        self.ended = asyncio.Event()
        self.ended.set()
        self._hello, self._silence, self._token = hello, silence, token
        self._path, self._read_error = path, read_error
        self._numbers, self._waiting = itertools.count(1), dict[int, asyncio.Future[Any] | None]()
        self._stack = contextlib.AsyncExitStack()
        self._heard = 0.0

    async def connect(self) -> None:
        """Connect, once what was open before is closed. Raises HostLost or HostRefused."""
        await self.close()
        async with contextlib.AsyncExitStack() as stack:
            connection = await self._opened(stack)
            self.limit, self.processes = await self._greeted(connection)
            _watch_dead_peers(connection)
            self._outbox = await stack.enter_async_context(Outbox(connection.send, self.lose))
            self.fault, self._heard = None, asyncio.get_running_loop().time()
            self.times += 1
            self.ended.clear()
            for work in (self._read(connection), self._listen()):
                stack.push_async_callback(_cancelled, asyncio.create_task(work))
            self._stack = stack.pop_all()

    async def close(self) -> None:
        """Hang up."""
        self.lose("it was left")
        await self._stack.aclose()

    def is_as(self, times: int) -> bool:
        """True if that connection is still open."""
        return self.fault is None and times == self.times

    def begin(self) -> int:
        """The number of an episode that is to be played there."""
        self.occupancy.change(1)
        return next(self._numbers)

    def leave(self, episode: int, times: int) -> None:
        """The episode is over, or was given up.

        Args:
            times: ``times`` when it began; one of an earlier connection has ended with that.
        """
        self.occupancy.change(-1)
        if self.is_as(times):
            self.tell("leave", episode=episode)

    async def ask(self, op: str, **fields: Any) -> Any:
        """The answer to a question. Raises HostLost, and what the other side said in place of an answer.

        Raises TypeError, and asks nothing, where ``fields`` are no plain JSON values.
        """
        return await self.question(op, **fields)

    def question(self, op: str, **fields: Any) -> asyncio.Future[Any]:
        """The answer to come, of a question that is on its way from now on; it is to be awaited. See ``ask``."""
        if self.fault is not None:
            raise HostLost(f"{self.url}: {self.fault}")
        number = next(self._numbers)
        self._outbox.put({"id": number, "op": op, **fields})  # first: what cannot be sent has no answer to wait for
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda _: self._forget(number))
        return answer

    def tell(self, op: str, **fields: Any) -> None:
        """Say what has no answer, unless the connection has ended."""
        if self.fault is None:
            self._outbox.put({"id": next(self._numbers), "op": op, **fields})

    def _forget(self, number: int) -> None:
        if number in self._waiting:  # nobody waits any more: the answer may still come, and is for nobody
            self._waiting[number] = None

    # ---- one connection -------------------------------------------------------------------------------------

    async def _opened(self, stack: contextlib.AsyncExitStack) -> ClientConnection:
        """The WebSocket. Raises HostLost or HostRefused."""
        once: Any = SingleConnection(ClientConnection)
        opened = connect(
            f"ws{self.url.removeprefix('http')}{self._path}",
            additional_headers={"Authorization": f"Bearer {self._token}"} if self._token else {},
            compression=None,  # a few bytes could unfold to any number
            max_size=LIMIT,
            open_timeout=_CONNECT_SECONDS,
            close_timeout=_CLOSE_SECONDS,
            ping_interval=None,  # this process may learn for minutes, and answers nothing meanwhile
            proxy=None,
            create_connection=once,
        )
        try:
            return await stack.enter_async_context(opened)
        except InvalidStatus as error:
            raise self._refused_at_the_door(error) from None
        except (OSError, WebSocketException, EOFError, TimeoutError) as error:
            raise HostLost(f"{self.url}: {str(error) or type(error).__name__}") from None

    def _refused_at_the_door(self, error: InvalidStatus) -> Exception:
        status = error.response.status_code
        if status in (401, 403):
            return HostRefused(f"{self.url} wants another token: set MANYTURN_TOKEN to the one it was started with")
        if status == 421:
            return HostRefused(f"{self.url} goes by another name: use the address that it printed")
        return HostLost(f"{self.url}: status {status} in place of a host's answer")

    async def _greeted(self, connection: ClientConnection) -> tuple[int, int]:
        """Numbers of episodes and processes of the host. Raises HostLost or HostRefused."""
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                await connection.send(self._hello)
                [message] = messages_in(await connection.recv())
            refused = str(message.get("message", ""))[:2000] if "refused" in message else ""
            limit, processes = (1, 1) if refused else (message["limit"], message["processes"])
            if type(limit) is not int or type(processes) is not int or limit < 1 or processes < 1:
                raise ValueError(f"it holds {limit!r:.40} episodes in {processes!r:.40} processes")
        except (OSError, WebSocketException, EOFError, TimeoutError, *_NONSENSE) as error:
            raise HostLost(f"{self.url}: no greeting of a host: {str(error) or type(error).__name__}") from None
        if refused:
            raise (HostLost if message["refused"] == _BUSY else HostRefused)(f"{self.url} {refused}")
        return limit, processes

    async def _read(self, connection: ClientConnection) -> None:
        try:
            while True:
                frame = await connection.recv()
                self._heard = asyncio.get_running_loop().time()
                for message in messages_in(frame):
                    self._take(message)
        except _NONSENSE as error:
            self.lose(f"it said what no host says: {error}")
        except (OSError, WebSocketException, EOFError) as error:
            self.lose(f"the connection ended: {str(error) or type(error).__name__}")

    def _take(self, message: Mapping[str, Any]) -> None:
        """Give an answer to whoever asked. Raises one of ``_NONSENSE`` for an answer to no question."""
        answer = self._waiting[message["id"]]
        error = self._read_error(message["error"]) if "error" in message else None
        value = None if error else message["value"]
        del self._waiting[message["id"]]  # not before it is known to be an answer: whoever waits hears of nonsense too
        if answer is None or answer.done():
            return
        if error:
            answer.set_exception(error)
        else:
            answer.set_result(value)

    async def _listen(self) -> None:
        """Ask for a sign of life while an answer is due, and hang up without one."""
        loop, pause = asyncio.get_running_loop(), self._silence / 4
        while self.fault is None:
            began = loop.time()
            await asyncio.sleep(pause)
            if loop.time() - began > 2 * pause:  # this process was busy itself, and what came is still unread
                self._heard = loop.time()
            if all(answer is None for answer in self._waiting.values()):
                self._heard = loop.time()
            elif loop.time() - self._heard > self._silence:
                self.lose(f"no sign of life for {self._silence:g} s")
            else:
                number = next(self._numbers)
                self._waiting[number] = None
                self._outbox.put({"id": number, "op": "ping"})

    def lose(self, why: str) -> None:
        """The connection is of no use from here on; whoever waits for an answer gets HostLost."""
        if self.fault is not None:
            return
        self.fault = why
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if answer is not None and not answer.done():
                answer.set_exception(HostLost(f"{self.url}: {why}"))
        self.ended.set()


_NONSENSE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def _watch_dead_peers(connection: ClientConnection) -> None:
    """Have the kernel notice that the other machine is gone, also while this process is busy."""
    tcp = connection.transport.get_extra_info("socket")
    if tcp is not None:
        keep_alive(tcp)


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait((task,))
