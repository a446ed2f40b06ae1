"""An environment as a server of the Open Reward Standard, played by the client of the package openreward 0.1.167.

Each result of a tool carries the reward of its turn. An environment with tools offers those; every environment offers
``act``, which takes a text. Source: openrewardstandard.io, and that package's ``environments/server.py``.

Implementation:
1. A client may invent its session's id, as it may at their server; a session is one episode.
2. Calls of one session are played one after the other, in the order in which they come.
3. A call's answer can be asked for again by its ``task_id``, and is not played twice.
4. An error of the environment is an event ``error``, after which their client ends the session. It is never a reward.
"""

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

import manyturn
from manyturn.envs.tools.tool_prompt import without_tools
from manyturn.serving.episodes import MOST_SEED, Episodes
from manyturn.serving.error_replies import Refusal
from manyturn.serving.wire_state import Moment
from manyturn.serving.wires.json_requests import answered, checked, json_of
from manyturn.serving.wires.task_lists import check_name, listed_splits, listed_tasks, served_name

_SESSION = "x-session-id"
_LONGEST_ID = 128
_KEPT = 4  # sessions that are remembered, for each episode that may be open
_REPEATED = 16  # calls of a session whose answers may be asked for again
_MOST_QUEUED = 64  # calls of a session that wait for their turn, also of clients that have hung up
_MOST_QUEUED_BYTES = 64 * 2**20  # of the calls of all sessions that wait
_PING_SECONDS = 10.0
_CHUNK = 4096  # characters of an event
_ACT = "Say or do something in words, in the form that the instructions ask for."
_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class _Spec(BaseModel):
    """A task as this server lists it; with a seed, the episode that it names."""

    model_config = ConfigDict(extra="forbid")

    task: StrictStr | None = None
    split: StrictStr | None = None
    seed: StrictInt | None = Field(default=None, ge=0, le=MOST_SEED)


class _Create(BaseModel):
    model_config = ConfigDict(extra="forbid")

    env_name: StrictStr | None = None
    task_spec: _Spec | None = None
    split: StrictStr | None = None
    index: StrictInt | None = Field(default=None, ge=0)
    toolset_name: None = None


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: StrictStr
    input: dict[str, Any]
    task_id: StrictStr | None = None


class _Session:
    """An episode, and the answers to its last calls, by the id of each."""

    def __init__(self, moment: Moment):
        self.first = self.moment = moment
        self.lock, self.calls = asyncio.Lock(), OrderedDict[str, asyncio.Task[dict[str, Any]]]()


def ors_app(episodes: Episodes) -> ASGIApp:
    """The application that speaks the Open Reward Standard."""
    server = _Server(episodes)
    name, identity = served_name(episodes), episodes.seats.identity.short
    fixed = {
        "/health": {"status": "ok"},
        "/version": {"version": f"{manyturn.__version__}+{identity}", "build_sha": None},
        "/list_environments": [name.lower()],
    }

    def route(path: str, handle: Any, method: str) -> Route:
        return Route(path, answered(handle), methods=[method])

    def say(value: Any) -> Any:
        async def handle(request: Request) -> Response:
            return JSONResponse(value)

        return handle

    own = [("tools", server.tools, "GET"), ("task_tools", server.tools, "GET"), ("prompt", server.prompt, "GET")]
    own += [("messages", server.messages, "GET"), ("splits", server.splits, "GET"), ("call", server.call, "POST")]
    own += [(what, server.tasks, "POST") for what in ("tasks", "num_tasks", "task", "task_range")]
    return Starlette(
        routes=[
            *(route(path, say(value), "GET") for path, value in fixed.items()),
            *(route(f"/{word}", getattr(server, word), "POST") for word in ("create_session", "create", "ping")),
            *(route(f"/{word}", server.delete, "POST") for word in ("delete", "delete_session")),
            # The one environment may be left unnamed, where their server redirects.
            *(route(f"{place}/{word}", handle, method) for word, handle, method in own for place in ("", "/{name}")),
        ]
    )


class _Server:
    def __init__(self, episodes: Episodes):
        self._episodes, self._sessions, self._queued_bytes = episodes, OrderedDict[str, _Session](), 0
        self._rules, tools = without_tools(episodes.seats.facts.instructions)
        functions = [tool["function"] for tool in tools]
        self._act = "act_text" if any(one["name"] == "act" for one in functions) else "act"
        self._has_tools = bool(functions)
        self._tools = [
            {"name": one["name"], "description": one.get("description", ""), "input_schema": one.get("parameters")}
            for one in functions
        ]
        self._tools.append({"name": self._act, "description": _ACT, "input_schema": _TEXT})

    async def create_session(self, request: Request) -> Response:
        return _events([("task_id", secrets.token_hex(16)), ("end", "")])

    async def create(self, request: Request) -> Response:
        sid, body = _sid(request), checked(_Create, await json_of(request))
        if sid in self._sessions:
            raise Refusal("bad_request", "the session has begun already: create another")
        if body.env_name is not None and body.env_name.lower() != served_name(self._episodes).lower():
            raise Refusal("no_episode", f"there is no such environment here: it is {served_name(self._episodes)}")
        if (body.task_spec is None) == (body.split is None or body.index is None):
            raise Refusal("bad_request", "an episode is of a task_spec, or of the index of a task in a split")
        spec = body.task_spec
        if spec is None:
            listed = await listed_tasks(self._episodes, "task", {"split": body.split, "index": body.index})
            spec = _Spec.model_validate(listed["task"])
        session = _Session(await self._episodes.begin(spec.task, spec.split, spec.seed))
        if sid in self._sessions:  # it was created twice at once
            await self._episodes.abandon(session.moment.episode)
            raise Refusal("bad_request", "the session has begun already: create another")
        self._sessions[sid] = session
        while len(self._sessions) > _KEPT * self._episodes.seats.limit:
            _, oldest = self._sessions.popitem(last=False)
            await self._episodes.abandon(oldest.moment.episode)
        return JSONResponse({"sid": sid})

    async def ping(self, request: Request) -> Response:
        self._episodes.touch(self._session(request).moment.episode)
        return JSONResponse({"status": "ok"})

    async def delete(self, request: Request) -> Response:
        session = self._sessions.pop(sid := _sid(request), None)
        if session is not None:
            await self._episodes.abandon(session.moment.episode)
        return JSONResponse({"sid": sid})

    async def tools(self, request: Request) -> Response:
        check_name(self._episodes, request)
        more = {"terminal_tool": None, "supports_score_group": False, "message_block_types": ["text"]}
        return JSONResponse({"tools": self._tools, **more})

    async def splits(self, request: Request) -> Response:
        check_name(self._episodes, request)
        return JSONResponse(listed_splits(self._episodes))

    async def tasks(self, request: Request) -> Response:
        check_name(self._episodes, request)
        what = request.url.path.rpartition("/")[2]
        return JSONResponse(await listed_tasks(self._episodes, what, await json_of(request)))

    async def prompt(self, request: Request) -> Response:
        return JSONResponse([block for message in self._begun(request) for block in message["blocks"]])

    async def messages(self, request: Request) -> Response:
        return JSONResponse(self._begun(request))

    async def call(self, request: Request) -> Response:
        session, body = self._session(request), checked(_Call, await json_of(request))
        call = body.task_id or secrets.token_hex(16)
        if body.task_id is None:
            self._queue(session, call, body, len(await request.body()))
        elif call not in session.calls:
            return _events([("error", "unknown task_id")])
        return StreamingResponse(_answer(call, session.calls[call]), media_type="text/event-stream")

    def _queue(self, session: _Session, call: str, body: _Call, size: int) -> None:
        """Play a call when it is its turn, whether or not its client waits. Raises Refusal where too many wait."""
        queued = sum(not work.done() for work in session.calls.values())
        if queued >= _MOST_QUEUED or self._queued_bytes + size > _MOST_QUEUED_BYTES:
            raise Refusal("busy", "too many calls wait for their turn: call again after an answer")
        self._queued_bytes += size
        work = session.calls[call] = asyncio.create_task(self._played(session, body))

        def leave(done: asyncio.Task[dict[str, Any]]) -> None:
            self._queued_bytes -= size
            if not done.cancelled():
                done.exception()  # there may be no client left to get it

        work.add_done_callback(leave)
        while len(session.calls) > _REPEATED and next(iter(session.calls.values())).done():
            session.calls.popitem(last=False)

    def _begun(self, request: Request) -> list[dict[str, Any]]:
        """The first messages: rules, and what the environment says first."""
        first = self._session(request).first
        rules = [{"role": "system", "blocks": [_block(self._rules)], "detail": None}] if self._rules else []
        return [*rules, {"role": "user", "blocks": [_block(first.answer.observation, _facts(first))], "detail": None}]

    def _session(self, request: Request) -> _Session:
        check_name(self._episodes, request)
        session = self._sessions.get(_sid(request))
        if session is None:
            raise Refusal("no_episode", "there is no such session: create one")
        return session

    async def _played(self, session: _Session, call: _Call) -> dict[str, Any]:
        """The result of a call, played as a turn; or why it is none, which no turn is spent on."""
        if call.name == self._act:
            if call.input.keys() != {"text"} or not isinstance(text := call.input["text"], str):
                return _fault("input_validation", f"{self._act} takes a text, and nothing else")
        elif self._has_tools:
            text = json.dumps({"name": call.name, "arguments": call.input}, ensure_ascii=False)
        else:
            return _fault("not_found", f"there is no such tool: the only one is {self._act}")
        async with session.lock:
            try:
                moment = await self._episodes.act(session.moment.episode, text)
            except Refusal as refusal:
                if refusal.kind == "ended":
                    return _fault("episode_finished", str(refusal))
                if refusal.kind == "bad_request":
                    return _fault("input_validation", str(refusal))
                raise refusal.again() from None
            session.moment = moment
        judged = moment.judged()
        if not judged["scored"]:
            await self._episodes.abandon(moment.episode)
            raise Refusal("unscored", f"what turn {moment.turn} is worth is not known: leave the episode out")
        blocks = [_block(moment.answer.observation)]
        output = {"reward": judged["reward"], "finished": moment.answer.ended, "metadata": _facts(moment)}
        return {"ok": True, "output": {"blocks": blocks, **output}}


def _sid(request: Request) -> str:
    sid = request.headers.get(_SESSION, "").strip()
    if not 0 < len(sid) <= _LONGEST_ID:
        raise Refusal("bad_request", f"the header X-Session-ID has 1 to {_LONGEST_ID} characters")
    return sid


def _block(text: str, detail: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "text", "text": text, "detail": detail}


def _fault(reason: str, text: str) -> dict[str, Any]:
    return {"ok": False, "error": text, "reason": reason}


def _facts(moment: Moment) -> dict[str, Any]:
    return {**moment.place(), **moment.judged()}


async def _answer(call: str, work: asyncio.Task[dict[str, Any]]) -> AsyncIterator[bytes]:
    """The events of a call; while it is played the connection is kept awake."""
    yield _event("task_id", call)
    while not (await asyncio.wait([work], timeout=_PING_SECONDS))[0]:
        yield b": ping\n\n"
    if (error := work.exception()) is not None:
        kind = error.kind if isinstance(error, Refusal) else "infra_error"
        yield _event("error", f"{kind}: {error}" if isinstance(error, Refusal) else f"{kind}: the server failed")
        return
    text = json.dumps(work.result(), allow_nan=False, separators=(",", ":"))
    pieces = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
    for number, piece in enumerate(pieces):
        # Their client strips the beginning of each event, and a space there is inside of a string.
        plain = piece.lstrip(" ")
        yield _event("end" if number == len(pieces) - 1 else "chunk", "\\u0020" * (len(piece) - len(plain)) + plain)


def _event(kind: str, data: str) -> bytes:
    return f"event: {kind}\ndata: {' '.join(data.splitlines())}\n\n".encode()


def _events(events: list[tuple[str, str]]) -> Response:
    return Response(b"".join(_event(*event) for event in events), media_type="text/event-stream")
