"""A page of the browser that only reaches what it may reach; episodes follow one another in it."""

import contextlib
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

from manyturn.envs.web.browser import Browser, BrowserError, the_browser

_KEPT = 50  # episodes that one context serves: what Chromium remembers of them does not pile up
_ACTION_MS = _NAVIGATION_MS = 30_000  # as much as a machine needs that has much else to do
_SECOND_MS = 1_000
_NOWHERE = "http://127.0.0.1:9"  # nobody listens there
# Playwright would try again and again to click what something else covers; here nothing moves by itself.
_COVERED = """(element) => {
  element.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  const { x, y, width, height } = element.getBoundingClientRect();
  const hit = element.ownerDocument.elementFromPoint(x + width / 2, y + height / 2);
  return hit !== null && !hit.contains(element) && !element.contains(hit) && hit.closest('label')?.control !== element;
}"""
# What it says of an element that is there and lets nobody act on it.
_REFUSAL = re.compile(
    r"intercepts pointer events|element is not (?:visible|enabled|editable|stable)|outside of the view"
)
T = TypeVar("T")


class Tab:
    """A page in a context of its own; use it from one thread at a time.

    Args:
        below: what every address must begin with that may be asked for; all else is aborted and counted. The browser's
            own guesses (prefetching) are not asked about, and end at a proxy that is not there.
        scripts: whether pages may run scripts. Then their clock stands still, and moves on by a second after each
            action, so that what they show does not depend on how fast the machine is.

    Attributes:
        blocked: how many requests were aborted.

    All methods raise BrowserError; ``open`` then starts over with a new context, in a new browser if need be.
    """

    def __init__(self, below: str, scripts: bool = False):
        self._below, self._scripts = below, scripts
        self._browser: Browser | None = None
        self._context: Any = None
        self._page: Any = None
        self._history: Any = None
        self._served = 0
        self._failed = False
        self.blocked = 0

    def open(self, address: str, start: str | None = None) -> None:
        """Begin an episode: nothing of the one before can be gone back to.

        Args:
            address: the first page.
            start: a script of ours that runs once it is there.
        """
        if self._browser is None or not self._browser.alive or self._failed:
            self.close()
            self._browser = the_browser()
        self._run(self._open(address, start))

    def go(self, address: str) -> None:
        """Go on to another page."""
        self._run(self._page.goto(address, wait_until="domcontentloaded", timeout=_NAVIGATION_MS))

    @property
    def address(self) -> str:
        """Of the page on show."""
        return self._page.url

    def snapshot(self) -> str:
        """The accessibility tree as Playwright writes it; elements have references."""
        return self._run(self._page.aria_snapshot(mode="ai", timeout=_NAVIGATION_MS))

    def click(self, reference: str) -> bool:
        """Click an element; False if something covers it, or it does not let itself be clicked."""
        element = self._element(reference)
        if self._scripts and self._run(element.evaluate(_COVERED, timeout=_ACTION_MS)):
            return False
        return self._run(self._act(lambda: element.click(timeout=_ACTION_MS)))

    def fill(self, reference: str, text: str) -> bool:
        """Put a text in place of what a field holds; False if it cannot be written to."""
        return self._run(self._act(lambda: self._element(reference).fill(text, timeout=_ACTION_MS)))

    def select(self, reference: str, option: str) -> bool:
        """Choose an option of a list by its text; False if it cannot be chosen."""
        return self._run(self._act(lambda: self._element(reference).select_option(label=option, timeout=_ACTION_MS)))

    def back(self) -> bool:
        """Go back one page; False if this is the first."""
        return self._run(self._back())

    def value(self, expression: str) -> Any:
        """Result of our script on the page, as plain data."""
        return self._run(self._page.evaluate(expression))

    def close(self) -> None:
        """Close the page and forget its context."""
        context, browser = self._context, self._browser
        self._forget()
        if context is not None and browser is not None and browser.alive:
            with contextlib.suppress(BrowserError):  # it has gone, and taken the context along
                browser.run(context.close())

    # ---- in the browser's thread ----------------------------------------------------------------------------

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if self._browser is None:
            call.close()
            raise BrowserError("no page is open")
        try:
            result = self._browser.run(call)
        except BrowserError:
            self._failed = True
            raise
        if self._failed:
            raise BrowserError("the page crashed")
        return result

    def _forget(self) -> None:
        self._browser = self._context = self._page = self._history = None
        self._served, self._failed = 0, False

    def _element(self, reference: str) -> Any:
        return self._page.locator(f"aria-ref={reference}")

    async def _open(self, address: str, start: str | None) -> None:
        # A clock keeps a list of what was done to it, for pages to come: no second episode with scripts in a context.
        if self._context is None or self._served >= _KEPT or self._scripts:
            if self._context is not None:
                await self._context.close()
            await self._new_context()
        self._served += 1
        await self._page.goto(address, timeout=_NAVIGATION_MS)
        await self._history.send("Page.resetNavigationHistory")
        if self._scripts:
            await self._page.clock.pause_at(_SECOND_MS * 60)
        if start is not None:
            await self._page.evaluate(start)
        await self._settle()

    async def _new_context(self) -> None:
        assert self._browser is not None
        self._context = await self._browser.new_context(
            accept_downloads=False,
            proxy={"server": _NOWHERE, "bypass": urlsplit(self._below).netloc or "none.invalid"},
            java_script_enabled=self._scripts,
            service_workers="block",
            viewport={"width": 1280, "height": 1024},
            locale="en-US",
            timezone_id="UTC",
        )
        self._served = 0
        await self._context.route("**/*", self._judge)
        if self._scripts:
            await self._context.route_web_socket("**/*", self._refuse)
            await self._context.clock.install(time=0)
        self._page = await self._context.new_page()
        self._history = await self._context.new_cdp_session(self._page)
        self._context.on("page", lambda popup: popup.close())
        self._page.on("dialog", lambda dialog: dialog.dismiss())
        self._page.on("crash", self._note_crash)

    async def _judge(self, route: Any) -> None:
        if route.request.url.startswith(self._below):
            await route.continue_()
        else:
            self.blocked += 1
            await route.abort("aborted")  # a page whose navigation is aborted so stays as it is

    async def _refuse(self, socket: Any) -> None:
        self.blocked += 1
        await socket.close()

    def _note_crash(self, _: Any) -> None:
        self._failed = True

    async def _act(self, call: Callable[[], Awaitable[Any]]) -> bool:
        from playwright.async_api import TimeoutError as Late

        try:
            await call()
        except Late as error:
            if _REFUSAL.search(error.message):
                return False
            raise
        await self._settle()
        return True

    async def _back(self) -> bool:
        entries = await self._history.send("Page.getNavigationHistory")
        if entries["currentIndex"] == 0:
            return False
        await self._page.go_back(wait_until="domcontentloaded", timeout=_NAVIGATION_MS)
        await self._settle()
        return True

    async def _settle(self) -> None:
        from playwright.async_api import Error

        await self._page.wait_for_load_state("domcontentloaded", timeout=_NAVIGATION_MS)
        if not self._scripts:
            return
        try:
            await self._page.clock.run_for(_SECOND_MS)
        except Error:
            if self._page.is_closed():
                raise
            await self._page.clock.run_for(_SECOND_MS)  # a popup, whose clock is the same, was just being closed
