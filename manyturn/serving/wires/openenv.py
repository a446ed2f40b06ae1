"""An environment as a server of OpenEnv, played by the client of openenv 0.10.0: sessions over a WebSocket.

Each connection is a session and holds one episode at a time, which ends with it. OpenEnv's own package makes an
environment for each request over HTTP; here such a request names the episode that it means. Source: the package openenv
0.10.0, ``openenv.core.env_server`` and ``openenv.cli``.
"""

import asyncio
import contextlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from manyturn.serving.episodes import MOST_SEED, Episodes
from manyturn.serving.error_replies import Refusal
from manyturn.serving.wire_state import Moment
from manyturn.serving.wires.json_requests import answered, checked, json_of
from manyturn.serving.wires.openenv_metadata import fact_routes

_CODES = {"bad_request": "VALIDATION_ERROR", "full": "CAPACITY_REACHED"}
_BEGIN_SECONDS = 60.0  # for a session that has not begun any episode
_OF_SESSION = frozenset({"no_episode", "ended", "busy", "stale"})


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ResetFields(_Fields):
    """Arguments of a reset."""

    seed: StrictInt | None = Field(default=None, ge=0, le=MOST_SEED)
    task: StrictStr | None = None
    split: StrictStr | None = None
    index: StrictInt | None = Field(default=None, ge=0)
    """The task's place in the split, as OpenEnv's own environments take one; ``split`` has to be named too."""
    episode_id: StrictStr | None = Field(default=None, max_length=255)
    """The client's own name of the episode; it comes back in the state."""


class ActionFields(_Fields):
    """An action."""

    # Clients that read a reply as JSON, such as that of verifiers, send the reply 5 as a number.
    text: Annotated[StrictStr, BeforeValidator(lambda value: str(value) if type(value) is int else value)] = Field(
        description="What the agent says or does, in the form that the instructions ask for."
    )
    turn: StrictInt | None = Field(default=None, description="How many turns had been played when it was chosen.")
    metadata: dict[str, Any] = Field(default={}, description="OpenEnv's own field; nothing reads it.")


class ObservationFields(_Fields):
    """An observation."""

    text: str = Field(description="What the environment says.")
    done: bool = False
    reward: float | None = None
    metadata: dict[str, Any] = Field(default={}, description="Facts about the turn, such as truncated and success.")


class StateFields(BaseModel):
    """State of a session."""

    episode_id: str | None = None
    step_count: int = 0


class _StepRequest(_Fields):
    action: ActionFields
    episode: StrictStr
    timeout_s: float | None = None
    request_id: str | None = None


def openenv_app(episodes: Episodes) -> ASGIApp:
    """The application that speaks OpenEnv's protocol."""

    async def over_socket(socket: WebSocket) -> None:
        await _Session(episodes, socket).talk()

    async def reset(request: Request) -> Response:
        fields = checked(ResetFields, await json_of(request, {}))
        return JSONResponse(_observation(await _begun(episodes, fields)))

    async def step(request: Request) -> Response:
        body = checked(_StepRequest, await json_of(request))
        return JSONResponse(_observation(await _played(episodes, body.episode, body.action)))

    async def state(request: Request) -> Response:
        return JSONResponse(_state(episodes.now(request.query_params.get("episode", "")), None))

    schemas = {
        "action": ActionFields.model_json_schema(),
        "observation": ObservationFields.model_json_schema(),
        "state": StateFields.model_json_schema(),
    }
    routes = [
        WebSocketRoute("/ws", over_socket),
        Route("/reset", answered(reset), methods=["POST"]),
        Route("/step", answered(step), methods=["POST"]),
        Route("/state", answered(state)),
    ]
    return Starlette(routes=[*routes, *fact_routes(episodes, schemas, answered)])


class _Session:
    """A WebSocket and its episode. Each message gets one answer, in the order in which they came."""

    def __init__(self, episodes: Episodes, socket: WebSocket):
        self._episodes, self._socket = episodes, socket
        self._now: Moment | None = None
        self._name: str | None = None
        self._has_begun = False

    async def talk(self) -> None:
        """Answer until the client leaves, falls silent, or is gone."""
        await self._socket.accept()
        try:
            if "session_id" in self._socket.query_params:
                refusal = Refusal("no_episode", "a session belongs to its connection: leave session_id out, and reset")
                await self._say(_error(refusal))
                return
            while True:
                idle = self._episodes.idle
                async with asyncio.timeout(idle if self._has_begun else min(idle, _BEGIN_SECONDS)):
                    message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                answer = await self._answer(message.get("text"))
                if answer is None:
                    return
                await self._say(answer)
        except (TimeoutError, WebSocketDisconnect):
            pass
        finally:
            if self._now is not None:
                await self._episodes.abandon(self._now.episode)
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # the client has closed it
                await self._socket.close()

    async def _answer(self, text: str | None) -> dict[str, Any] | None:
        """The answer to a message; None if it asks for the end."""
        try:
            message = json.loads(text or "")
        except (ValueError, RecursionError):
            return _coded("INVALID_JSON", "a message is one JSON object, as text")
        if not isinstance(message, dict) or message.keys() - {"type", "data"}:
            return _coded("VALIDATION_ERROR", "a message has a type and data, and nothing else")
        data = message.get("data", {})
        try:
            match message.get("type"):
                case "reset":
                    return {"type": "observation", "data": _observation(await self._reset(data))}
                case "step":
                    return {"type": "observation", "data": _observation(await self._step(data))}
                case "state":
                    return {"type": "state", "data": _state(self._now, self._name)}
                case "close":
                    return None
                case "mcp":
                    return _coded("UNKNOWN_TYPE", "there are no tools: an action is text, in a step")
                case _:
                    return _coded("UNKNOWN_TYPE", "a message's type is reset, step, state or close")
        except Refusal as refusal:
            return _error(refusal)

    async def _reset(self, data: Any) -> Moment:
        fields = checked(ResetFields, data)
        before, self._now = self._now, None
        if before is not None:
            await self._episodes.abandon(before.episode)
        self._now, self._name = await _begun(self._episodes, fields), fields.episode_id
        self._has_begun = True
        return self._now

    async def _step(self, data: Any) -> Moment:
        fields = checked(ActionFields, data)
        if self._now is None:
            raise Refusal("no_episode", "this connection has no episode: reset first")
        self._now = await _played(self._episodes, self._now.episode, fields)
        return self._now

    async def _say(self, answer: dict[str, Any]) -> None:
        await self._socket.send_text(json.dumps(answer, allow_nan=False))


async def _begun(episodes: Episodes, fields: ResetFields) -> Moment:
    task = fields.task
    if fields.index is not None:
        if fields.split is None or task is not None:
            raise Refusal("bad_request", "an index is that of a task in a split: name the split, and no task")
        page, count = await episodes.tasks(fields.split, fields.index, 1)
        if not page:
            raise Refusal("bad_request", f"there is no task {fields.index}: {fields.split} has {count}")
        [task] = page
    return await episodes.begin(task, fields.split, fields.seed)


async def _played(episodes: Episodes, episode: str, action: ActionFields) -> Moment:
    """A turn whose reward is known: clients sum rewards up and take none for 0, so an unknown one ends the episode."""
    moment = await episodes.act(episode, action.text, action.turn)
    if not moment.judged()["scored"]:
        await episodes.abandon(episode)
        raise Refusal("unscored", f"what turn {moment.turn} is worth is not known: leave the episode out")
    return moment


def _observation(moment: Moment) -> dict[str, Any]:
    """A turn as OpenEnv's clients read it; facts are in both places in which they look for them."""
    judged = moment.judged()
    reward = judged.pop("reward") if moment.turn else None  # nothing has been done that could have earned one
    facts = {**moment.place(), **judged}
    return {
        "observation": {"text": moment.answer.observation, "metadata": facts},
        "reward": reward,
        "done": moment.answer.ended,
        "metadata": facts,
    }


def _state(moment: Moment | None, name: str | None) -> dict[str, Any]:
    if moment is None:
        return {"episode_id": None, "step_count": 0}
    return {"episode_id": name or moment.episode, "step_count": moment.turn, **moment.place()}


def _error(refusal: Refusal) -> dict[str, Any]:
    usual = "SESSION_ERROR" if refusal.kind in _OF_SESSION else "EXECUTION_ERROR"
    return _coded(_CODES.get(refusal.kind, usual), f"{refusal.kind}: {refusal}", kind=refusal.kind)


def _coded(code: str, message: str, **more: str) -> dict[str, Any]:
    return {"type": "error", "data": {"message": message, "code": code, **more}}
