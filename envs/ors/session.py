"""A session of the Open Reward Standard: one episode, whose calls are answered by streams of events.

Source: openrewardstandard.io, and the package openreward 0.1.167, ``environments/server.py`` and ``api/_session``.

Implementation:
1. A call whose stream breaks off is asked for again by its ``task_id``, so that it is not played twice. One that breaks
   off before it has an id is lost, and the episode with it.
2. A server that is still starting is asked until the time of an answer is over.
"""

import contextlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import httpx

from manyturn.envs.contract.registration.env_registry import NeedsSetup, OutsideLost
from manyturn.envs.openenv.address import Address
from manyturn.envs.openenv.faults import BadAnswer, ServerRaised, short

_MOST_BYTES = 32 * 2**20  # of one answer
_SESSION = re.compile(r"[!-~]{1,256}")  # it is sent in a header
_RESUMED = 3  # times that a call is asked for again
_OF_OUR_PLACE = ("infra_error", "closing", "full")  # kinds of our own server
_FULL = "; where the server takes few sessions at once, give as many as it takes with --env.args.sessions"


class Session:
    """An episode at a server.

    Args:
        address: of the server.
        name: of the environment there.
        seconds: that each answer may take.

    Raises:
        OutsideLost: the server cannot be reached, is full, or has lost the session.
        NeedsSetup: it wants a key.
        ServerRaised: its environment raised.
        BadAnswer: it broke a rule.
    """

    def __init__(self, address: Address, name: str, seconds: float):
        self._address, self._name, self._seconds, self._sid = address, name, seconds, ""
        self._client = httpx.Client(timeout=seconds, trust_env=not address.is_here)

    def begin(self, task: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        """Begin an episode; its prompt and the tools of its task.

        Args:
            task: ``task_spec``, or ``split`` and ``index``.
        """
        for event, data in self._events("/create_session", {}):
            if event == "task_id":
                self._sid = data.strip()
        if not _SESSION.fullmatch(self._sid):
            answer, self._sid = self._sid, ""
            raise BadAnswer(f"the server gave no session: its id is {short(answer)!r}")
        self._json("POST", "/create", {"env_name": self._name, **task})
        prompt, tools = self._json("GET", f"/{self._name}/prompt"), self._json("GET", f"/{self._name}/task_tools")
        listed = tools.get("tools") if isinstance(tools, Mapping) else None
        if not isinstance(prompt, list) or not isinstance(listed, list):
            raise BadAnswer(f"the server begins with {short(prompt)} and {short(tools)}")
        return prompt, listed

    def call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a tool, ``ok`` and ``output`` or ``error`` as the server sent them."""
        body, stop = {"name": name, "input": dict(arguments)}, time.monotonic() + self._seconds
        for attempt in range(_RESUMED + 1):
            try:
                return self._result(body)
            except OutsideLost:
                if "task_id" not in body or attempt == _RESUMED or time.monotonic() > stop:
                    raise
        raise AssertionError("the last attempt raises")

    def close(self) -> None:
        """End the episode."""
        if self._sid:
            for path in ("/delete", "/delete_session"):
                # The answer is not read: it may have no end.
                where, ending = f"{self._address.http}{path}", {"headers": self._headers(), "timeout": 2.0}
                with contextlib.suppress(httpx.HTTPError, OSError), self._client.stream("POST", where, **ending):
                    pass
        self._client.close()

    def _result(self, body: dict[str, Any]) -> Mapping[str, Any]:
        pieces = []
        for event, data in self._events(f"/{self._name}/call", body):
            if event == "task_id":
                body["task_id"] = data.strip()
            elif event in ("chunk", "end"):
                pieces.append(data)
            elif event == "error":
                if data.startswith(_OF_OUR_PLACE):
                    raise OutsideLost(f"the server says {short(data)}")
                raise ServerRaised(f"the server says {short(data)}")
            if event == "end":
                result = _value("".join(pieces))
                if isinstance(result, Mapping) and isinstance(result.get("ok"), bool):
                    return result
                raise BadAnswer(f"the result of a tool is {short(result)}")
        raise OutsideLost("the stream of a result ended before the result did")

    def _events(self, path: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Events as they come, each with its data."""
        event, data = "", list[str]()
        for line in self._lines("POST", path, body):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                event = value
            elif field == "data":
                data.append(value)
            elif not line and event:
                yield event, "\n".join(data)
                event, data = "", []

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        return _value("\n".join(self._lines(method, path, body)))

    def _lines(self, method: str, path: str, body: Any) -> Iterator[str]:
        """Lines of an answer of status 200, within bounds of size and time."""
        where, stop = f"{self._address.http}{path}", time.monotonic() + self._seconds
        try:
            while True:
                with self._client.stream(method, where, json=body, headers=self._headers()) as response:
                    starting = response.status_code == 503 and response.headers.get("x-backend-state") == "starting"
                    if not starting or time.monotonic() > stop:
                        yield from self._text(response, where, stop)
                        return
                time.sleep(1.0)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            reason = short(str(error) or type(error).__name__)
            raise OutsideLost(f"{where} cannot be reached: {reason}") from None

    def _text(self, response: httpx.Response, where: str, stop: float) -> Iterator[str]:
        size, rest = 0, b""
        for chunk in response.iter_raw():
            size += len(chunk)
            if time.monotonic() > stop:  # httpx counts the time of each piece by itself
                late = f"no answer within {self._seconds:g} s: --env.args.timeout gives more"
                raise OutsideLost(f"{where}: {late}")
            if size > _MOST_BYTES:
                raise BadAnswer(f"{where} sends more than {_MOST_BYTES:,} bytes")
            *lines, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
            if response.status_code == 200:
                yield from (line.decode(errors="replace") for line in lines)
            else:
                rest = b"\n".join([*lines, rest])
        if response.status_code == 200:
            yield rest.decode(errors="replace")
            return
        _refuse(
            response.status_code,
            f"{where}: status {response.status_code}: {short(rest.decode(errors='replace'))}",
            self._address.token,
        )

    def _headers(self) -> dict[str, str]:
        session = {"X-Session-ID": self._sid} if self._sid else {}
        return {"Accept-Encoding": "identity", **session, **self._address.headers}


def _refuse(status: int, text: str, token: str) -> NoReturn:
    """Raise what a status means. A request that the server does not take is no fault of the environment's."""
    if status in (401, 403):
        raise NeedsSetup(f"{text}: set {token} to the server's key")
    if status in (404, 410, 429, 502, 503, 504) or 300 <= status < 400:
        raise OutsideLost(f"{text}{_FULL if status in (429, 503) else ''}")
    raise ServerRaised(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadAnswer(f"the server sent no JSON: {short(text)}") from None
