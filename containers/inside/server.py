"""The tool server: the first process of a container, root, with only the capabilities needed to drop privileges.

It answers one request at a time, and between two answers no process of the agent's exists. What belongs to the agent is
started, read and written as the agent's user only. It ends when its input ends, and the container with it.
"""

from __future__ import annotations

import os
import traceback
from typing import Any, NamedTuple, NoReturn

from manyturn.containers.inside import agent, commands, files, landlock, seen, wire
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


def _hello(places: Places, asked: Message) -> Message:
    found = seen.facts((places.workspace, *places.scratch))
    return Message({"version": wire.VERSION, "landlock": landlock.enforced(), **found})


def _ping(places: Places, asked: Message) -> Message:
    return Message({})


def _run(places: Places, asked: Message) -> Message:
    fields = asked.fields
    if b"\0" in asked.body or len(asked.body) > MAX_SCRIPT:
        raise Refused(f"a script has no NUL byte, and at most {MAX_SCRIPT} bytes")
    if not 0.0 < fields["seconds"] <= MAX_SECONDS:
        raise Refused(f"a command may take more than 0 and at most {MAX_SECONDS:g} seconds")
    environ = {**os.environ, **_ENVIRON, **fields["environ"]}
    done = commands.run(
        commands.Request(asked.body, fields["folder"], environ, fields["seconds"], fields["keep"], fields["report"])
    )
    told = {name: getattr(done, name) for name in ("status", "seconds", "timed_out", "left_out")}
    lengths = {"head": len(done.head), "tail": len(done.tail)}
    return Message({**told, **lengths, "oom_kills": seen.oom_kills()}, done.head + done.tail + done.report)


def _read(places: Places, asked: Message) -> Message:
    return Message({}, files.read(places, asked.fields["path"], asked.fields["limit"]))


def _write(places: Places, asked: Message) -> Message:
    files.write(places, asked.fields["path"], asked.body)
    return Message({})


def _snapshot(places: Places, asked: Message) -> Message:
    key, archive = files.snapshot(places)
    return Message({"key": key}, archive)


def _restore(places: Places, asked: Message) -> Message:
    commands.end_all({})
    files.restore(places, asked.body)
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


def _answer(places: Places, asked: Message) -> Message:
    try:
        return _OPERATIONS[asked.fields["op"]](places, asked)
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
    asked = Message(*wire.receive(_take))
    nonce = asked.fields["nonce"]
    places = Places(**asked.fields["places"])
    agent.be(asked.fields["agent"], places.workspace)
    landlock.prepare((places.workspace, *places.scratch))
    commands.prepare()
    while True:
        reply = _answer(places, asked)
        header = {**reply.fields, "id": asked.fields["id"], "nonce": nonce}
        _tell(wire.opening(header, len(reply.body)))
        _tell(reply.body)
        asked = Message(*wire.receive(_take))
