"""The tool server: the first process of a container, root, with only the capabilities needed to drop privileges.

It answers one request at a time, and between two answers no process of the agent's exists. What belongs to the agent is
started, read and written as the agent's user only. It ends when its input ends, and the container with it.
"""

from __future__ import annotations

import os
import traceback
from typing import Any, NamedTuple, NoReturn

from manyturn.containers.inside import commands, container_limits, files, landlock, privilege_drop, wire
from manyturn.containers.inside.files import Places, Refused

MAX_SCRIPT = 8 << 20
MAX_SECONDS = 86_400.0
_ENVIRON = {
    "HOME": "/tmp",
    "USER": "agent",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Message(NamedTuple):
    """A request or what it is answered with: a header's fields and a body."""

    fields: dict[str, Any]
    body: bytes = b""


def _hello(places: Places, request: Message) -> Message:
    facts = container_limits.facts((places.workspace, *places.scratch))
    return Message({"version": wire.VERSION, "landlock": landlock.enforced(), **facts})


def _ping(places: Places, request: Message) -> Message:
    return Message({})


def _run(places: Places, request: Message) -> Message:
    fields = request.fields
    if b"\0" in request.body or len(request.body) > MAX_SCRIPT:
        raise Refused(f"a script has no NUL byte, and at most {MAX_SCRIPT} bytes")
    if not 0.0 < fields["seconds"] <= MAX_SECONDS:
        raise Refused(f"a command may take more than 0 and at most {MAX_SECONDS:g} seconds")
    environ = {**os.environ, **_ENVIRON, **fields["environ"]}
    done = commands.run(
        commands.Request(request.body, fields["folder"], environ, fields["seconds"], fields["keep"], fields["report"])
    )
    result = {name: getattr(done, name) for name in ("status", "seconds", "timed_out", "left_out")}
    lengths = {"head": len(done.head), "tail": len(done.tail)}
    result |= {**lengths, "oom_kills": container_limits.oom_kills()}
    return Message(result, done.head + done.tail + done.report)


def _read(places: Places, request: Message) -> Message:
    return Message({}, files.read(places, request.fields["path"], request.fields["limit"]))


def _write(places: Places, request: Message) -> Message:
    files.write(places, request.fields["path"], request.body)
    return Message({})


def _snapshot(places: Places, request: Message) -> Message:
    key, archive = files.snapshot(places)
    return Message({"key": key}, archive)


def _restore(places: Places, request: Message) -> Message:
    commands.end_all({})
    files.restore(places, request.body)
    return Message({})


_OPERATIONS = {
    "hello": _hello,
    "ping": _ping,
    "run": _run,
    "read": _read,
    "write": _write,
    "snapshot": _snapshot,
    "restore": _restore,
}


def _answer(places: Places, request: Message) -> Message:
    try:
        return _OPERATIONS[request.fields["op"]](places, request)
    except Refused as error:
        return Message({"refused": str(error)})
    except Exception:
        return Message({"failed": traceback.format_exc(limit=-3)})


def _take(count: int) -> bytes:
    """Exactly so many bytes of what the host says; its end is the end of all."""
    data = bytearray()
    while len(data) < count:
        chunk = os.read(0, min(count - len(data), 1 << 20))
        if not chunk:
            os._exit(0)
        data += chunk
    return bytes(data)


def _tell(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(1, left) :]


def main() -> NoReturn:
    """Serve until the host is gone. The first request is ``hello``: it says who the agent is, and where."""
    os.umask(0o022)
    os.chdir("/")
    request = Message(*wire.receive(_take))
    nonce = request.fields["nonce"]
    places = Places(**request.fields["places"])
    privilege_drop.be(request.fields["agent"], places.workspace)
    landlock.prepare((places.workspace, *places.scratch))
    commands.prepare()
    while True:
        reply = _answer(places, request)
        header = {**reply.fields, "id": request.fields["id"], "nonce": nonce}
        _tell(wire.opening(header, len(reply.body)))
        _tell(reply.body)
        request = Message(*wire.receive(_take))
