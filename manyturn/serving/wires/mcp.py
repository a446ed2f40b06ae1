"""An environment as a server of the Model Context Protocol, played by the client of the package mcp 2.3.0.

An episode is named in each call, since the protocol of 2026-07-28 has no sessions; clients of older versions play in
the same way. What a model may read is in a result's content; what judges it is in ``_meta``, which hosts keep to
themselves. Source: modelcontextprotocol.io, versions 2025-11-25 and 2026-07-28, as in the package mcp 2.3.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple

from mcp.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolResult, ListToolsResult, TextContent, Tool
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

import manyturn
from manyturn.serving.episodes import MOST_LISTED, MOST_SEED, Episodes
from manyturn.serving.error_replies import Refusal
from manyturn.serving.middleware import MOST_BYTES
from manyturn.serving.wire_state import Moment

META = "manyturn/"
PATH = "/mcp"
_ABOUT = (
    "Call begin, read its text, and answer with act, again and again until the episode has ended. begin names the "
    "episode; give its id to every act."
)


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Begin(_Arguments):
    task: Annotated[StrictStr | None, Field(description="Id of a task; left out, one is drawn from the split.")] = None
    split: Annotated[StrictStr | None, Field(description="Where tasks are drawn from.")] = None
    seed: Annotated[
        StrictInt | None, Field(ge=0, le=MOST_SEED, description="Decides what is drawn and what happens by chance.")
    ] = None


class _Act(_Arguments):
    episode: Annotated[StrictStr, Field(description="The id that begin gave.")]
    text: Annotated[StrictStr, Field(description="What you say or do now, in the form that the instructions ask for.")]
    turn: Annotated[
        StrictInt | None, Field(description="How many turns had been played when you chose; left out, any number.")
    ] = None


class _Leave(_Arguments):
    episode: Annotated[StrictStr, Field(description="The id that begin gave.")]


class _Tasks(_Arguments):
    split: Annotated[StrictStr | None, Field(description="Which split; left out, that of the server.")] = None
    first: Annotated[StrictInt, Field(ge=0, description="How many to pass by.")] = 0
    count: Annotated[StrictInt, Field(ge=1, le=MOST_LISTED, description="How many to list.")] = 100


class _Tool(NamedTuple):
    about: str
    arguments: type[_Arguments]
    call: Callable[[Any], Awaitable[CallToolResult]]


def mcp_app(episodes: Episodes) -> ASGIApp:
    """The application that speaks MCP at ``PATH``."""
    tools = _tools(episodes)
    listed = [
        Tool(name=name, description=tool.about, input_schema=tool.arguments.model_json_schema())
        for name, tool in tools.items()
    ]

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        try:
            tool = tools.get(params.name)
            if tool is None:
                raise Refusal("bad_request", f"no tool {params.name[:100]!r}: there are {', '.join(tools)}")
            return await tool.call(_checked(tool.arguments, params.arguments or {}))
        except Refusal as refusal:
            if refusal.is_of_client:
                return _result([f"{refusal.kind}: {refusal}"], {"error": refusal.plain()}, is_error=True)
            # Not a result that a model reads and plays on from: whoever runs the episode has to know.
            raise MCPError(INTERNAL_ERROR, f"{refusal.kind}: {refusal}", refusal.plain()) from None

    server = Server(
        episodes.seats.facts.name,
        version=manyturn.__version__,
        instructions=f"{_ABOUT}\n\n{episodes.seats.facts.instructions}".strip(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # No state of the protocol's own: what a client drops leaves nothing but an episode, which closes when idle.
    return _without_streams(
        server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=MOST_BYTES,
            host="",
        )
    )


def _without_streams(app: ASGIApp) -> ASGIApp:
    """Refuse GET, as the protocol allows: nothing is ever sent unasked, and a stream for it would never end."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == PATH:
            answering: ASGIApp = PlainTextResponse("this server sends no events: use POST", 405, {"allow": "POST"})
        else:
            answering = app
        await answering(scope, receive, send)

    return answer


def _tools(episodes: Episodes) -> dict[str, _Tool]:
    instructions = episodes.seats.facts.instructions

    async def begin(request: _Begin) -> CallToolResult:
        moment = await episodes.begin(request.task, request.split, request.seed)
        handle = f"This is episode {moment.episode}: name it in every act."
        return _moment_result(moment, [instructions, moment.answer.observation, handle], {"instructions": instructions})

    async def act(request: _Act) -> CallToolResult:
        moment = await episodes.act(request.episode, request.text, request.turn)
        over = "The episode has ended: no turns are left." if moment.answer.truncated else "The episode has ended."
        return _moment_result(moment, [moment.answer.observation, over if moment.answer.ended else ""], {})

    async def leave(request: _Leave) -> CallToolResult:
        await episodes.leave(request.episode)
        return _result(["The episode is closed."], {"episode": request.episode})

    async def tasks(request: _Tasks) -> CallToolResult:
        ids, total = await episodes.tasks(request.split, request.first, request.count)
        return _result(["\n".join(ids)], {"tasks": ids, "total": total, "splits": list(episodes.splits)})

    return {
        "begin": _Tool("Begin an episode and read its first text.", _Begin, begin),
        "act": _Tool("Play one turn of an episode and read what comes of it.", _Act, act),
        "leave": _Tool("Close an episode that you do not play to its end.", _Leave, leave),
        "tasks": _Tool("List ids of tasks, for begin.", _Tasks, tasks),
    }


def _checked(kind: type[_Arguments], given: Any) -> _Arguments:
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise Refusal("bad_request", f"{where[:100]}: {fault['msg']}") from None


def _moment_result(moment: Moment, texts: list[str], more: dict[str, Any]) -> CallToolResult:
    structured = {"text": moment.answer.observation, **moment.place(), **more}
    return _result(texts, structured, {f"{META}{name}": value for name, value in moment.judged().items()})


def _result(
    texts: list[str], structured: dict[str, Any], meta: dict[str, Any] | None = None, is_error: bool = False
) -> CallToolResult:
    content: list[Any] = [TextContent(type="text", text=text) for text in texts if text]
    return CallToolResult(content=content, structured_content=structured, is_error=is_error, _meta=meta)
