"""An environment as a resources server of NeMo Gym, played by ``gymnasium_agent`` of nemo-gym 0.7.0.

A session is a cookie, whose value is the episode's id. The agent repeats a request whose answer was lost; a step's
``_ng_step_request_id`` then gets the answer that it had. NeMo Gym's answer has no place for a failed turn, so it is an
error of HTTP: the agent raises, and the rollout is a failure without a reward. Source: the package nemo-gym 0.7.0,
``resources_servers/gymnasium/base.py`` and ``responses_api_agents/gymnasium_agent/app.py``.
"""

import asyncio
import json
import re
from collections import OrderedDict
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from manyturn.envs.contract.random_keys import seed_of
from manyturn.serving.episodes import MOST_SEED, Episodes
from manyturn.serving.error_replies import Refusal
from manyturn.serving.wire_state import Moment
from manyturn.serving.wires.json_requests import answered, checked, json_of

COOKIE = "manyturn_episode"
_ABILITIES = {"supports_explicit_close": True, "supports_step_idempotency": True}
_ROLLOUT = re.compile(r"^/ng-rollout/[^/]+/")
_TASK = "_ng_task_index"  # of a rollout
_LONGEST_ID = 128  # of a request
_LARGEST = 1e100  # that a reward in a mean may be
_KEPT = 4  # answers that are kept to be repeated, for each episode that may be open


class _Drawn(BaseModel):
    """Field ``manyturn`` of a data set's row."""

    model_config = ConfigDict(extra="forbid")

    task: StrictStr | None = None
    split: StrictStr | None = None
    seed: StrictInt | None = Field(default=None, ge=0, le=MOST_SEED)


class _Row(BaseModel):
    """A row as the agent sends it; what is in it besides is the host's own."""

    manyturn: _Drawn = _Drawn()


class _Step(BaseModel):
    response: dict[str, Any]
    request: StrictStr | None = Field(default=None, alias="_ng_step_request_id", min_length=1, max_length=_LONGEST_ID)


class _Rollouts(BaseModel):
    verify_responses: list[dict[str, Any]]


class _Last(NamedTuple):
    """An episode's last step: the request that asked for it, and the work that answers it."""

    request: str
    work: asyncio.Task[Moment]


def nemo_gym_app(episodes: Episodes) -> ASGIApp:
    """The application that speaks NeMo Gym's protocol."""
    last: OrderedDict[str, _Last] = OrderedDict()  # episode -> its last step

    async def reset(request: Request) -> Response:
        row = checked(_Row, await json_of(request)).manyturn
        if before := request.cookies.get(COOKIE):
            await episodes.abandon(before)
        moment = await episodes.begin(row.task, row.split, row.seed)
        body = {"observation": moment.answer.observation, "info": {**_ABILITIES, **_facts(moment)}}
        reply = JSONResponse(body)
        reply.set_cookie(COOKIE, moment.episode, httponly=True, samesite="strict")
        return reply

    async def step(request: Request) -> Response:
        body = checked(_Step, await json_of(request))
        episode, text = _episode(request), _text(body.response)
        before = last.get(episode)
        if body.request is None or before is None or before.request != body.request:
            episodes.now(episode)  # raises for one that is not known, so that none but ours are kept below
            work = asyncio.create_task(_played(episodes, episode, text))
            work.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear it
            if body.request is not None:
                last[episode] = _Last(body.request, work)
                last.move_to_end(episode)
                while len(last) > _KEPT * episodes.seats.limit:
                    last.popitem(last=False)
        else:
            work = before.work
        try:
            moment = await asyncio.shield(work)
        except Refusal as refusal:
            raise refusal.again() from None
        return JSONResponse(_step_of(moment))

    async def close(request: Request) -> Response:
        episode = _episode(request)
        last.pop(episode, None)
        await episodes.abandon(episode)
        return JSONResponse({})

    async def rows(request: Request) -> Response:
        return Response(await _rows(episodes, request), media_type="application/x-ndjson")

    async def aggregate(request: Request) -> Response:
        return JSONResponse(_aggregate(checked(_Rollouts, await json_of(request)).verify_responses))

    async def verify(request: Request) -> Response:
        raise Refusal("bad_request", "turns are judged as they are played, by /reset and /step: use gymnasium_agent")

    routes = [
        Route("/reset", answered(reset), methods=["POST"]),
        Route("/step", answered(step), methods=["POST"]),
        Route("/close", answered(close), methods=["POST"]),
        Route("/rows", answered(rows)),
        Route("/aggregate_metrics", answered(aggregate), methods=["POST"]),
        *(Route(path, answered(verify), methods=["POST"]) for path in ("/seed_session", "/verify", "/close_session")),
    ]
    return _without_rollout(Starlette(routes=routes))


def _step_of(moment: Moment) -> dict[str, Any]:
    """A turn's answer as Gymnasium's five values by name."""
    answer = moment.answer
    return {
        "observation": answer.observation,
        "reward": answer.reward,
        "terminated": answer.ended and not answer.truncated,
        "truncated": answer.truncated,
        "info": _facts(moment),
    }


def _without_rollout(app: ASGIApp) -> ASGIApp:
    """The application, where the host puts a rollout's id before the path, as it does when it observes rollouts."""

    async def plain(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = _ROLLOUT.sub("/", scope["path"])
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await app(scope, receive, send)

    return plain


async def _played(episodes: Episodes, episode: str, text: str) -> Moment:
    """A turn whose reward is known: the agent sums rewards up, so an unknown one ends the episode."""
    moment = await episodes.act(episode, text)
    if not moment.judged()["scored"]:
        await episodes.abandon(episode)
        raise Refusal("unscored", f"what turn {moment.turn} is worth is not known: leave the episode out")
    return moment


def _episode(request: Request) -> str:
    episode = request.cookies.get(COOKIE)
    if episode is None:
        raise Refusal("no_episode", "there is no session: send the cookie that /reset set")
    return episode


def _text(response: dict[str, Any]) -> str:
    """The text of a response, as NeMo Gym's ``extract_text`` reads it. Raises Refusal."""
    output, texts, is_called = response.get("output"), list[str](), False
    if not isinstance(output, list):
        raise Refusal("bad_request", "response.output: a response has a list of items")
    for item in output:
        if not isinstance(item, dict):
            raise Refusal("bad_request", "response.output: an item is an object")
        is_called = is_called or item.get("type") == "function_call"
        if item.get("type") != "message":
            continue
        content = item.get("content")
        parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else content
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "output_text":
                if not isinstance(text := part.get("text"), str):
                    raise Refusal("bad_request", "response.output: a message's text is text")
                texts.append(text)
    if is_called and not "".join(texts).strip():
        raise Refusal("bad_request", "an action is text: take tools out of responses_create_params")
    return "".join(texts)


def _facts(moment: Moment) -> dict[str, Any]:
    return {"text": moment.answer.observation, **moment.place(), **moment.judged()}


async def _rows(episodes: Episodes, request: Request) -> str:
    """Tasks of a split as rows of a data set, each with the seed of its episodes."""
    query = request.query_params
    split = query.get("split", episodes.split)
    try:
        first, count = int(query.get("first", "0")), int(query.get("count", "100"))
    except ValueError:
        raise Refusal("bad_request", "first and count are whole numbers") from None
    if unknown := query.keys() - {"split", "first", "count"}:
        raise Refusal("bad_request", f"rows take split, first and count, not {min(unknown)[:100]}")
    system = {"role": "system", "content": episodes.seats.facts.instructions}
    messages = [system] if system["content"] else []
    lines = []
    for task in (await episodes.tasks(split, first, count))[0]:
        drawn = {"task": task, "split": split, "seed": seed_of("exported", task) >> 32}
        lines.append(json.dumps({"responses_create_params": {"input": messages}, "manyturn": drawn}) + "\n")
    return "".join(lines)


def _aggregate(rollouts: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over rollouts and over those of each task; what is masked or not known is left out."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for rollout in rollouts:
        if rollout.get("mask_sample") is not True:
            task = rollout.get(_TASK)
            groups.setdefault(task if type(task) is int else 0, []).append(rollout)
    everything = [one for group in groups.values() for one in group]
    means = _means(everything)
    return {
        "group_level_metrics": [{_TASK: task, **_means(group)} for task, group in groups.items()],
        "agent_metrics": {**means, "rollouts": len(rollouts), "masked": len(rollouts) - len(everything)},
        "key_metrics": means,
        "repeat_level_metrics": [],
    }


def _means(rollouts: list[dict[str, Any]]) -> dict[str, float]:
    sums: dict[str, list[float]] = {"mean/reward": [], "mean/success": []}
    for one in rollouts:
        info = one.get("info")
        measured = (one.get("reward"), info.get("success") if isinstance(info, dict) else None)
        for values, value in zip(sums.values(), measured, strict=True):
            if isinstance(value, int | float) and abs(value) < _LARGEST:  # which NaN is not
                values.append(float(value))
    return {name: fmean(values) for name, values in sums.items() if values}
