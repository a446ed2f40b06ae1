"""A sandbox in a container of Docker's or Podman's.

One container, one attached stream, no exec: a command costs a round trip through the engine instead of a new process in
it. All that can be written is a few small file systems in memory, so a snapshot of the workspace is all there is.
"""

import os
import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any

from manyturn.containers.docker import agent_user, bootstrap
from manyturn.containers.docker.container_config import arguments
from manyturn.containers.docker.stream import Stream, StreamEnded
from manyturn.containers.engine import preflight
from manyturn.containers.engine.container_engine import (
    KILLED,
    ContainerEnd,
    ContainerEngine,
    client,
    ending,
    engine_errors,
    remove,
)
from manyturn.containers.inside import wire
from manyturn.containers.inside.commands import CANNOT_END
from manyturn.containers.sandbox import (
    SCRATCH,
    SERVER_MB,
    WORKSPACE,
    EngineUnavailable,
    Ran,
    SandboxLimits,
    SandboxLost,
    SandboxOverrun,
    SandboxRefused,
    Snapshot,
)

_ENVIRON_CHARACTERS = 100_000
_START_SECONDS = 120.0
_CALL_SECONDS = 60.0
_PING_SECONDS = 10.0
_TOLD_LATE = 1.0  # seconds by which the engine may learn of one thing later than of another
_MB = 1 << 20
_TAR_ENTRY = 8192  # more than a tar needs for an entry on top of its content


class DockerSandbox:
    """See Sandbox. One caller at a time is served; others wait.

    Attributes:
        engine: what it was made with.
        name: of the container.
        agent: user id of its commands, once it has started.
        landlock: whether its commands can write to the places of an agent alone, /proc left out; once it has started.
        spent: why it should not serve another episode, or "".
    """

    def __init__(self, engine: ContainerEngine | None = None) -> None:
        self.engine, self.spent = engine or ContainerEngine(), ""
        self.name = f"manyturn-{os.getpid()}-{secrets.token_hex(4)}"
        self._pid, self._nonce = os.getpid(), secrets.token_hex(16)
        self._stream: Stream | None = None
        self._requests, self._oom_kills, self.agent = 0, 0, 0
        self.landlock = False
        self._lock = threading.Lock()

    def start(self) -> None:
        facts = preflight.examined()
        preflight.demand(facts, self.engine)
        self.agent = self.engine.agent or agent_user.drawn(facts)
        try:
            self._stream = self._attached()
            self._stream.send(bootstrap.payload())
            seen, _ = self._call("hello", _START_SECONDS, nonce=self._nonce, **_where(self.engine), agent=self.agent)
            preflight.confirm(seen, self.engine)
            self.landlock = bool(seen["landlock"])
        except (SandboxLost, StreamEnded) as error:
            self.stop()
            raise EngineUnavailable(f"the tool server does not start in {self.engine.image}: {error}") from error
        except BaseException:
            self.stop()
            raise

    def ping(self) -> None:
        """Raises SandboxLost unless the tool server answers soon."""
        self._call("ping", _PING_SECONDS)

    def run(
        self,
        script: str,
        *,
        seconds: float = 30.0,
        folder: str = WORKSPACE,
        environ: Mapping[str, str] | None = None,
        report: bool = False,
    ) -> Ran:
        fields = {"folder": folder, "environ": dict(environ or {}), "seconds": seconds, "report": report}
        if sum(len(name) + len(value) for name, value in fields["environ"].items()) > _ENVIRON_CHARACTERS:
            raise SandboxRefused(f"an environment has at most {_ENVIRON_CHARACTERS:,} characters")
        try:
            text = script.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise SandboxRefused("the script has half a surrogate pair, which is no character") from None
        keep = self.engine.limits.output_bytes
        header, body = self._call("run", seconds + self.engine.margin, text, keep=keep, **fields)
        self._wear(header)
        middle = header["head"] + header["tail"]
        output = _joined(body[: header["head"]], body[header["head"] : middle], header["left_out"])
        return Ran(header["status"], output, header["seconds"], header["timed_out"], body[middle:])

    def read(self, path: str, limit: int = 1_000_000) -> bytes:
        return self._call("read", _CALL_SECONDS, path=path, limit=limit)[1]

    def write(self, path: str, content: bytes) -> None:
        self._call("write", _CALL_SECONDS, content, path=path)

    def snapshot(self) -> Snapshot:
        header, archive = self._call("snapshot", _CALL_SECONDS)
        return Snapshot(header["key"], archive)

    def restore(self, snapshot: Snapshot) -> None:
        self._call("restore", _CALL_SECONDS, snapshot.archive)

    def hang_up(self) -> None:
        """End the tool server, and so the container, without waiting for it."""
        stream, self._stream = self._stream, None
        if stream is not None and self._pid == os.getpid():
            stream.close()

    def stop(self) -> None:
        self.hang_up()
        if self._pid == os.getpid():
            remove(self.name)

    def _attached(self) -> Stream:
        """Start the container, with its input and output in hand before it says anything."""
        with engine_errors(f"start a container from {self.engine.image}"):
            _refuse_volumes(client().inspect_image(self.engine.image), self.engine.image)
            client().create_container(**arguments(self.engine, self.name, self.agent, preflight.examined().podman))
            options = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            stream = Stream(client().attach_socket(self.name, params=options))
            stream.until(_START_SECONDS)
            client().start(self.name)
            return stream

    def _call(self, op: str, patience: float, content: bytes = b"", **fields: Any) -> tuple[dict[str, Any], bytes]:
        """One request and its reply. Raises SandboxRefused, and SandboxLost, after which there is no container."""
        with self._lock:
            stream = self._stream
            if stream is None or self._pid != os.getpid():
                raise SandboxLost("the sandbox does not run, or belongs to another process")
            self._requests += 1
            request, began = {"op": op, "id": self._requests, **fields}, time.monotonic()
            try:
                header, body = self._exchange(stream, request, content, patience)
            except TimeoutError:
                raise self._lost(stream, began, f"no answer to {op} within {patience:g} s") from None
            except (StreamEnded, OSError):
                raise self._lost(stream, began, f"the container ended during {op}") from None
            except wire.Garbled as error:
                raise self._lost(stream, began, f"a garbled answer to {op}: {error}") from None
            except BaseException:
                self.stop()  # half a frame may be under way
                raise
            if "failed" in header:
                raise self._lost(stream, began, f"the tool server failed during {op}: {header['failed']}")
            if "refused" in header:
                raise SandboxRefused(header["refused"])
            return header, body

    def _exchange(
        self, stream: Stream, request: dict[str, Any], content: bytes, patience: float
    ) -> tuple[dict[str, Any], bytes]:
        limits = self.engine.limits
        stream.until(patience)
        stream.send(wire.opening(request, len(content)))
        stream.send(content)
        most = max(_snapshot_bytes(limits) + limits.files * _TAR_ENTRY, 2 * wire.MAX_REPORT)
        header, body = wire.receive(stream.read, most)
        if (header.get("id"), header.get("nonce")) != (request["id"], self._nonce):
            raise wire.Garbled("it answers something else")
        return header, body

    def _lost(self, stream: Stream, began: float, reason: str) -> SandboxLost:
        took = time.monotonic() - began
        stream.close()
        end, message = ending(self.name), stream.stderr_tail.decode("utf-8", "replace").strip()
        self.stop()
        overrun = _overrun(end, took)
        how = overrun or ("" if end.status is None else f"exit status {end.status}")
        kind = SandboxOverrun if overrun else SandboxLost
        return kind("; ".join(part for part in (reason, how, message and f"it said: {message}") if part))

    def _wear(self, header: Mapping[str, Any]) -> None:
        if header["timed_out"]:
            self.spent = "a command was killed at its deadline"
        if header["oom_kills"] > self._oom_kills:
            self._oom_kills, self.spent = header["oom_kills"], "it ran out of memory"


def _overrun(end: ContainerEnd, seconds: float) -> str:
    """Resource that a container ran out of, if it ended within this many seconds by itself; else empty."""
    if end.status == KILLED and end.starved is not None and end.starved <= seconds + _TOLD_LATE:
        return "it ran out of memory"
    return "its processes could not be ended" if end.status == CANNOT_END else ""


def _refuse_volumes(image_facts: Mapping[str, Any], image: str) -> None:
    if volumes := (image_facts.get("Config") or {}).get("Volumes"):
        names = ", ".join(sorted(volumes))
        raise EngineUnavailable(
            f"{image} declares volumes ({names}), which a sandbox could not empty: take another image"
        )


def _joined(head: bytes, tail: bytes, left_out: int) -> str:
    if not left_out:
        return (head + tail).decode("utf-8", "replace")
    first, last = head.decode("utf-8", "replace"), tail.decode("utf-8", "replace")
    return f"{first}\n... {left_out} bytes left out ...\n{last}"


def _snapshot_bytes(limits: SandboxLimits) -> int:
    """No more than the tool server has memory for: the files themselves are in memory, and it holds them twice."""
    room = max((limits.memory_mb - SERVER_MB - len(SCRATCH) * limits.scratch_mb) // 3, 1)
    return min(limits.workspace_mb, room, wire.MAX_BODY // _MB // 2) * _MB


def _where(engine: ContainerEngine) -> dict[str, Any]:
    limits = engine.limits
    places = {
        "workspace": WORKSPACE,
        "scratch": SCRATCH,
        "max_entries": limits.files,
        "max_bytes": _snapshot_bytes(limits),
    }
    return {"places": places}
