"""One Chromium for each process, in a thread with an event loop of its own.

Environments are stepped synchronously, from any thread, and often while the caller's own event loop runs; so the
browser's calls are awaited elsewhere. A browser that crashed or hangs is given up as a whole, and the next call for one
starts another.
"""

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from manyturn.envs.web.chromium import launch_options

_START_SECONDS = 60.0
_CALL_SECONDS = 60.0
_STOP_SECONDS = 5.0
T = TypeVar("T")


class BrowserError(RuntimeError):
    """The browser crashed, hangs or shows something else than it was sent: never an answer to an action."""


class Browser:
    """A running Chromium.

    Attributes:
        alive: whether it still answers.
        pid: of the process that started it; a fork has no browser.

    Raises:
        BrowserError: it does not start.
    """

    def __init__(self) -> None:
        options = launch_options()
        self.pid, self.alive = os.getpid(), True
        self._playwright: Any = None
        self._chromium: Any = None
        self._loop = asyncio.new_event_loop()
        # Whoever calls is told what went wrong; of what nobody waits for, the driver's end is all that is ever said.
        self._loop.set_exception_handler(lambda loop, context: None)
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._thread.start()
        self.run(self._start(options), _START_SECONDS)

    def run(self, call: Coroutine[Any, Any, T], seconds: float = _CALL_SECONDS) -> T:
        """The result of a coroutine over Playwright's objects. Raises BrowserError, after which it is not alive."""
        from playwright.async_api import Error

        if not self.alive:
            call.close()
            raise BrowserError("the browser is gone")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            self.stop()
            raise BrowserError(f"the browser did not answer within {seconds:g} s") from None
        except Error as error:
            line = error.message.partition("\n")[0]
            if not self._answers():
                self.stop()  # the other pages are gone too
            raise BrowserError(f"the browser failed: {line}") from error

    async def new_context(self, **options: Any) -> Any:
        """A context of Playwright's: to be called in ``run``."""
        return await self._chromium.new_context(**options)

    def stop(self) -> None:
        """End Chromium and the thread, also when they no longer answer."""
        if not self.alive:
            return
        self.alive = False
        ending = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        with contextlib.suppress(Exception):  # what cannot be told to end loses its pipe, and ends at that
            ending.result(_STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)

    def _answers(self) -> bool:
        """True if Chromium still runs; Playwright may not have noticed its end."""

        async def ask() -> None:
            session = await self._chromium.new_browser_cdp_session()
            await session.send("Browser.getVersion")
            await session.detach()

        try:
            asyncio.run_coroutine_threadsafe(ask(), self._loop).result(_STOP_SECONDS)
        except Exception:
            return False
        return True

    async def _start(self, options: dict[str, Any]) -> None:
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        self._chromium = await self._playwright.chromium.launch(**options)

    async def _end(self) -> None:
        if self._chromium is not None:
            with contextlib.suppress(Exception):
                await self._chromium.close()
        if self._playwright is not None:
            await self._playwright.stop()


_lock = threading.Lock()
_current: Browser | None = None


def the_browser() -> Browser:
    """This process's browser, started if there is none that is alive. Raises BrowserError."""
    global _current
    with _lock:
        if _current is None or not _current.alive or _current.pid != os.getpid():
            _current = Browser()
        return _current


@atexit.register
def _stop() -> None:
    if _current is not None and _current.pid == os.getpid():
        _current.stop()
