"""Server of a growing run's or evaluation's report, on this machine, for browsers that have its address."""

import contextlib
import html
import re
import secrets
from pathlib import Path

from manyturn.agents.records.tables import RecordsError
from manyturn.envs.web.server_socket import listening
from manyturn.report.document import evaluation_in
from manyturn.report.live_document import Follower
from manyturn.report.page import live_page
from manyturn.report.report_head import ReportError

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise ImportError("manyturn view needs starlette and uvicorn: pip install 'manyturn[web]'") from error

TOKEN_HEADER = "x-manyturn-token"
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class ViewError(RuntimeError):
    """The server cannot start; the text says how to fix it."""


class View:
    """A server on a port of 127.0.0.1, which is bound immediately.

    Args:
        path: folder of a run or of an evaluation; it may come into being later.
        port: 0 takes any that is free.

    Attributes:
        url: where a browser finds it. The token comes after the #, which browsers do not send to any server.

    Raises:
        ViewError: the port cannot be had.
    """

    def __init__(self, path: Path, port: int = 0):
        try:
            self._socket = listening(port)
        except ValueError as error:
            raise ViewError(str(error)) from None
        bound = self._socket.getsockname()[1]
        # The one number that must not derive from a seed: whoever could compute it could read the run.
        token = secrets.token_urlsafe(32)
        self.url = f"http://127.0.0.1:{bound}/#token={token}"
        config = uvicorn.Config(
            view_app(Follower(path), token, bound),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until ``stop`` or Ctrl-C, which ends in KeyboardInterrupt."""
        with contextlib.closing(self._socket):
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """End ``run``, from any thread."""
        self._server.should_exit = True


def serve(path: Path, port: int = 0) -> None:
    """Serve a folder until Ctrl-C; the line that is printed has the address.

    Raises:
        ReportError, CompareError: the folder holds neither a run nor a finished evaluation.
    """
    evaluation_in(path)
    view = View(path, port)
    print(f"{path}: {view.url} (Ctrl-C ends)", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        view.run()


def view_app(follower: Follower, token: str, port: int) -> ASGIApp:
    """The page, the document and its chunks, guarded."""
    page = live_page()
    match = _POLICY.search(page)
    assert match, "the page carries its policy"
    policy = {"content-security-policy": f"{html.unescape(match[1])}; frame-ancestors 'none'"}

    def index(request: Request) -> Response:
        return HTMLResponse(page, headers=policy)

    def document(request: Request) -> Response:
        body, tag = follower.newest()
        tags = [one.strip() for one in request.headers.get("if-none-match", "").split(",")]
        if tag in tags:
            return Response(status_code=304, headers={"etag": tag})
        return Response(body, media_type="application/json", headers={"etag": tag})

    def chunk(request: Request) -> Response:
        number = request.path_params["number"]
        if not re.fullmatch(r"[0-9]{1,9}", number):
            return PlainTextResponse("chunks have numbers", 404)
        try:
            traces = follower.chunk(int(number), request.headers.get("if-match", ""))
            return Response(traces, media_type="application/json")
        except IndexError as error:
            return PlainTextResponse(str(error), 404)
        except (ReportError, RecordsError) as error:
            return PlainTextResponse(str(error), 409)

    routes = [Route("/", index), Route("/api/document", document), Route("/api/chunk/{number}", chunk)]
    return Guard(Starlette(routes=routes), token, port)


class Guard:
    """Lets requests through that a page of this server makes, and gives every answer the headers that protect it.

    Names other than this machine's are refused, for a foreign page may have its own name resolve to 127.0.0.1; so are
    requests that another page caused. Anything that holds data asks for the token too.
    """

    def __init__(self, app: ASGIApp, token: str, port: int):
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        if scope["type"] == "http":
            refusal = self._refusal(scope["method"], scope["path"], Headers(scope=scope))
            await (refusal or self._app)(scope, receive, protected)

    def _refusal(self, method: str, path: str, headers: Headers) -> Response | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return PlainTextResponse("open the address that manyturn view printed", 403)
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            return PlainTextResponse("requests of other pages are refused", 403)
        if method != "GET":
            return PlainTextResponse("there is nothing but GET", 405, {"allow": "GET"})
        if path == "/":
            return None
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("requests of other pages are refused", 403)
        if not secrets.compare_digest(headers.get(TOKEN_HEADER, "").encode(), self._token):
            return PlainTextResponse("the token is missing or wrong: open the address that manyturn view printed", 401)
        return None
