"""Requests over HTTP: their body as JSON, checked, and refusals as answers with a status."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from manyturn.serving.error_replies import Refusal

_STATUS = {"bad_request": 422, "no_episode": 404, "ended": 409, "busy": 409, "stale": 409, "env_error": 500}


def answered(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """A handler whose refusals are answers with a status."""

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
        except Refusal as refusal:
            body = {"detail": f"{refusal.kind}: {refusal}", "kind": refusal.kind}
            return JSONResponse(body, _STATUS.get(refusal.kind, 503))

    return answer


async def json_of(request: Request, default: Any = None) -> Any:
    """The body of a request; ``default`` stands for an empty one. Raises Refusal."""
    body = await request.body()
    if not body and default is not None:
        return default
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal("bad_request", "the request holds no JSON") from None


def checked(kind: type[Any], given: Any) -> Any:
    """Parse a request's body into a pydantic model. Raises Refusal."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "data"
        plain = where[:100].encode("ascii", "backslashreplace").decode()  # a client's own words
        raise Refusal("bad_request", f"{plain}: {fault['msg']}") from None
