"""The shop as a web site for this machine alone: one visit for each address, which cannot be guessed.

An address names a visit and the number of one of its states.
"""

import atexit
import contextlib
import os
import re
import secrets
import threading
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from manyturn.envs.shop.browser.page_html import CHOICE, LONGEST, POLICY, WORDS
from manyturn.envs.shop.browser.shop_visit import Visit
from manyturn.envs.web.server_socket import listening

_HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_LONGEST_BODY = 16 * LONGEST


class SiteError(ValueError):
    """The server cannot start; the text says what would fix it."""


class Site:
    """A server on a port of 127.0.0.1, in a thread of its own.

    Args:
        port: 0 takes any that is free.

    Attributes:
        pid: of the process that started it; a fork has no server.

    Raises:
        SiteError: the port cannot be had.
    """

    def __init__(self, port: int = 0):
        try:
            self._socket = listening(port)
        except ValueError as error:
            raise SiteError(str(error)) from None
        self.pid = os.getpid()
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._visits: dict[str, Visit] = {}
        options = {"http": "h11", "ws": "none", "lifespan": "off", "log_config": None, "log_level": "error"}
        options |= {"access_log": False, "proxy_headers": False, "server_header": False}
        config = uvicorn.Config(self._app(), timeout_graceful_shutdown=1, **options)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="shop site", daemon=True)
        self._thread.start()

    def open(self, visit: Visit) -> str:
        """Put a visit on the site: its address, to which the number of a state is added."""
        # Not from a seed: whoever could compute it could take part in the visit.
        key = secrets.token_urlsafe(24)
        self._visits[key] = visit
        return f"{self.origin}/{key}/"

    def close(self, address: str) -> None:
        """Take a visit off the site."""
        self._visits.pop(address.rstrip("/").rpartition("/")[2], None)

    def stop(self) -> None:
        """End the server."""
        self._server.should_exit = True
        self._thread.join(5)

    def _run(self) -> None:
        with contextlib.closing(self._socket):
            self._server.run(sockets=[self._socket])

    def _app(self) -> ASGIApp:
        page = Route("/{key}/{number}", self._page, methods=["GET", "POST"])
        return _Guard(Starlette(routes=[page]), self.origin)

    async def _page(self, request: Request) -> Response:
        visit, number = self._visits.get(request.path_params["key"]), request.path_params["number"]
        if visit is None or not re.fullmatch("[0-9]{1,6}", number):
            return _answer("nothing is here", 404)
        try:
            if request.method == "POST":
                fields = await _fields(request)
                result = await run_in_threadpool(visit.act, int(number), int(fields[CHOICE]), fields.get(WORDS, ""))
                return RedirectResponse(str(result), 303, headers=_HEADERS)
            return HTMLResponse(
                (await run_in_threadpool(visit.show, int(number))).encode("utf-8", "replace"), headers=_HEADERS
            )
        except (IndexError, KeyError, ValueError):
            return _answer("nothing is here", 404)


async def _fields(request: Request) -> dict[str, str]:
    """Fields that the form sent. Raises ValueError if they are too long or of no known form."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST_BODY:
            raise ValueError("too much")
    return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=4))


def _answer(text: str, status: int) -> Response:
    return PlainTextResponse(text, status, headers=_HEADERS)


class _Guard:
    """Refuses other names for this machine, which a foreign page may have resolve to it, and other pages' forms."""

    def __init__(self, app: ASGIApp, origin: str):
        self._app, self._origin = app, origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        # A form on a page without referrer says "null" for its origin, so that alone is no ground to refuse it.
        foreign = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        foreign |= headers.get("origin", self._origin) not in (self._origin, "null")
        if headers.getlist("host") != [self._origin.removeprefix("http://")] or foreign:
            await _answer("requests of other pages are refused", 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


_lock = threading.Lock()
_site: Site | None = None


def the_site() -> Site:
    """This process's site, started when first asked for."""
    global _site
    with _lock:
        if _site is None or _site.pid != os.getpid():
            _site = Site()
        return _site


@atexit.register
def _stop() -> None:
    if _site is not None and _site.pid == os.getpid():
        _site.stop()
