"""Description of an OpenEnv server and its tasks, for tools that look before they play."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import manyturn
from manyturn.serving.episodes import MOST_LISTED, Episodes
from manyturn.serving.error_replies import Refusal

Handler = Callable[[Request], Awaitable[Response]]
_KINDS = ("train", "validation", "test")  # of splits, of which OpenEnv knows no other
_API_VERSION = "1.0.0"  # of OpenEnv's standard for servers
_NO_TOOLS = {"code": -32601, "message": "there are no tools: an action is text, in a step over /ws"}


def fact_routes(episodes: Episodes, schemas: Mapping[str, Any], answered: Callable[[Handler], Handler]) -> list[Route]:
    """Routes that play nothing.

    Args:
        schemas: of action, observation and state.
        answered: makes a handler's refusals answers.
    """
    seats = episodes.seats
    name = re.split(r"[/:]", seats.facts.name)[-1]
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
        return JSONResponse(await _tasks(episodes, name, request))

    async def splits(request: Request) -> Response:
        _check_name(name, request)
        kinds = [{"name": split, "type": split if split in _KINDS else "validation"} for split in episodes.splits]
        return JSONResponse(kinds)

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


async def _tasks(episodes: Episodes, name: str, request: Request) -> dict[str, Any]:
    """The answer to a question about tasks: how many there are, one, some, or all."""
    _check_name(name, request)
    try:
        body = await request.json()
        split, numbers = body["split"], [body.get(key) for key in ("index", "start", "stop")]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise Refusal("bad_request", "the request names a split, as JSON") from None
    if not isinstance(split, str) or any(type(number) not in (int, type(None)) for number in numbers):
        raise Refusal("bad_request", "a split is text, and index, start and stop are numbers")
    index, start, stop = numbers
    count = (await episodes.tasks(split, 0, 1))[1]
    match request.path_params["what"]:
        case "num_tasks":
            return {"num_tasks": count}
        case "task" if index is not None and 0 <= index < count:
            [task], _ = await episodes.tasks(split, index, 1)
            return {"task": {"task": task, "split": split}}
        case "task_range" | "tasks" as what:
            first, end = (0, count) if what == "tasks" else slice(start, stop).indices(count)[:2]
            if end - first > MOST_LISTED:
                raise Refusal("bad_request", f"{split} has {count} tasks: ask for {MOST_LISTED} at once, by task_range")
            ids = (await episodes.tasks(split, first, end - first))[0] if end > first else []
            return {"tasks": [{"task": task, "split": split} for task in ids], "env_name": name}
    raise Refusal("bad_request", f"there are num_tasks, task with an index below {count}, tasks and task_range")


def _check_name(name: str, request: Request) -> None:
    if request.path_params["name"].lower() != name.lower():
        raise Refusal("no_episode", f"there is no such environment here: it is {name}")
