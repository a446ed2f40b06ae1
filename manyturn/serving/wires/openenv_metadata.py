"""Description of an OpenEnv server and its tasks, for tools that look before they play."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import manyturn
from manyturn.serving.episodes import Episodes
from manyturn.serving.wires.json_requests import json_of
from manyturn.serving.wires.task_lists import check_name, listed_splits, listed_tasks, served_name

Handler = Callable[[Request], Awaitable[Response]]
_API_VERSION = "1.0.0"  # of OpenEnv's standard for servers
_NO_TOOLS = {"code": -32601, "message": "there are no tools: an action is text, in a step over /ws"}


def fact_routes(episodes: Episodes, schemas: Mapping[str, Any], answered: Callable[[Handler], Handler]) -> list[Route]:
    """Routes that play nothing.

    Args:
        schemas: of action, observation and state.
        answered: makes a handler's refusals answers.
    """
    seats = episodes.seats
    name = served_name(episodes)
    about = {
        "name": name,
        "description": seats.facts.instructions,
        "version": f"{manyturn.__version__}+{seats.identity.short}",
        "readme_content": None,
        "author": None,
        "documentation_url": None,
    }

    def fixed(path: str, value: Any, method: str = "GET") -> Route:
        async def say(request: Request) -> Response:
            return JSONResponse(value)

        return Route(path, say, methods=[method])

    async def tasks(request: Request) -> Response:
        check_name(episodes, request)
        return JSONResponse(await listed_tasks(episodes, request.path_params["what"], await json_of(request)))

    async def splits(request: Request) -> Response:
        check_name(episodes, request)
        return JSONResponse(listed_splits(episodes))

    listed = ("/health", "/metadata", "/schema", "/state", "/list_environments")
    paths = {path: {"get": {"responses": {"200": {"description": "it"}}}} for path in listed}
    paths |= {path: {"post": {"responses": {"200": {"description": "a turn"}}}} for path in ("/reset", "/step")}
    return [
        fixed("/health", {"status": "healthy"}),
        fixed("/metadata", about),
        fixed("/schema", dict(schemas)),
        fixed("/openapi.json", {"openapi": "3.1.0", "info": {"title": name, "version": _API_VERSION}, "paths": paths}),
        fixed("/mcp", {"jsonrpc": "2.0", "id": None, "error": _NO_TOOLS}, "POST"),
        fixed("/list_environments", [name]),
        Route("/{name}/splits", answered(splits)),
        Route("/{name}/{what:str}", answered(tasks), methods=["POST"]),
    ]
