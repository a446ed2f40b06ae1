"""A container engine: Docker's, or any that speaks its API on a socket."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from manyturn.containers.sandbox import EngineUnavailable, SandboxLimits

LABEL = "manyturn"
KILLED = 128 + 9
_SECONDS = 60
_REMOVAL_SECONDS = 10
_PAUSE = 0.02
_NO_CLIENT = "sandboxes need the package docker: pip install 'manyturn[docker]'"
_IN_CHECKOUT = Path(__file__).resolve().parents[2] / ".ci" / "engine"  # no wheel has it
_REMEDIES = "start Docker or Podman's socket service, or set DOCKER_HOST to an engine's socket (unix:///path)"
if _IN_CHECKOUT.is_file():
    _REMEDIES += ", or run `.ci/engine start`"


class ContainerEngine(BaseModel):
    """Request to the engine for one container.

    Attributes:
        image: with Python >= 3.8 and bash; it must declare no volumes.
        limits: of each container.
        runtime: name of one of the engine's runtimes, such as "runsc" (gVisor); its default one if None.
        agent: user id of the agent's commands; by default one of its own for each container.
        python: the interpreter for the tool server, a name in the image's PATH or a path.
        margin: seconds beyond a command's own deadline after which the sandbox is given up.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    image: str = "manyturn-python:1"
    limits: SandboxLimits = SandboxLimits()
    runtime: str | None = None
    agent: int | None = Field(default=None, gt=0, lt=1 << 31)
    python: str = "python3"
    margin: float = Field(default=20.0, gt=0)


_local = threading.local()


def client() -> Any:
    """Docker's APIClient for DOCKER_HOST, one for each thread of each process. Raises EngineUnavailable."""
    here = (os.getpid(), os.environ.get("DOCKER_HOST"))
    if getattr(_local, "made_for", None) != here:
        _local.client, _local.made_for = _connect(), here
    return _local.client


@contextlib.contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Errors of the engine's become EngineUnavailable, and so does the lack of its client."""
    try:
        from docker.errors import APIError, DockerException
        from requests.exceptions import RequestException
    except ImportError as error:
        raise EngineUnavailable(_NO_CLIENT) from error
    try:
        yield
    except APIError as error:
        raise EngineUnavailable(f"the engine cannot {doing}: {error.explanation or error}") from error
    except (DockerException, RequestException, OSError) as error:
        where = os.environ.get("DOCKER_HOST") or "its default socket"
        raise EngineUnavailable(f"no container engine answers at {where} ({_reason(error)}): {_REMEDIES}") from error


def remove(name: str) -> None:
    """Remove a container, which may be gone already or about to go. An engine that is gone has no containers."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException

    last = time.monotonic() + _REMOVAL_SECONDS
    with contextlib.suppress(DockerException, RequestException, EngineUnavailable):
        while time.monotonic() < last:
            with contextlib.suppress(APIError):  # it is just ending, or the engine removes it already
                client().remove_container(name, force=True, v=True)
            client().inspect_container(name)  # there is an error once it is gone
            time.sleep(_PAUSE)


class ContainerEnd(NamedTuple):
    """End of a container, as far as the engine still knows.

    Attributes:
        status: exit status of its first process; None if it is not known to have ended.
        starved: seconds from when its memory last ran out to its end; None if that did not happen.
    """

    status: int | None = None
    starved: float | None = None


def ending(name: str) -> ContainerEnd:
    """End of a container; one that still runs gets a second to end."""
    filters = {"container": [name], "event": ["die", "died", "oom"]}  # Podman asks for its own word
    last_of = dict[str, dict[str, Any]]()  # the last of each
    with contextlib.suppress(EngineUnavailable), engine_errors("list events"):
        now = int(time.time())
        for event in client().events(since=now - 3600, until=now + 2, filters=filters, decode=True):
            last_of[event["Action"]] = event
            if "die" in last_of and ("oom" in last_of or _status(last_of["die"]) != KILLED):  # they come in any order
                break
    if "die" not in last_of:
        return ContainerEnd()
    starved = (_seconds(last_of["die"]) - _seconds(last_of["oom"])) if "oom" in last_of else None
    return ContainerEnd(_status(last_of["die"]), starved)


def _status(die: Mapping[str, Any]) -> int | None:
    attributes = die["Actor"]["Attributes"]
    text = str(attributes.get("exitCode") or attributes.get("containerExitCode", ""))
    return int(text) if text.isdecimal() else None


def _seconds(event: Mapping[str, Any]) -> float:
    return float(event.get("timeNano", 0)) / 1e9 or float(event.get("time", 0))


def _connect() -> Any:
    try:
        from docker import APIClient
        from docker.utils import kwargs_from_env
    except ImportError as error:
        raise EngineUnavailable(_NO_CLIENT) from error
    with engine_errors("be reached"):
        # kwargs_from_env reads DOCKER_HOST and the TLS variables, as every client does.
        return APIClient(version="auto", timeout=_SECONDS, **kwargs_from_env())


def _reason(error: BaseException) -> str:
    """The innermost reason of a chain of errors, in one line."""
    inner = error
    while (cause := inner.__cause__ or inner.__context__) is not None:
        inner = cause
    text = str(inner) or type(inner).__name__
    return " ".join(text.split())[:200]
