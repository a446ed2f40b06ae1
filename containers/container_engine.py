"""A container engine: Docker's, or any that speaks its API on a socket."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from manyturn.containers.sandbox import EngineUnavailable, SandboxLimits

LABEL = "manyturn"
_SECONDS = 60
_REMOVAL_SECONDS = 10
_PAUSE = 0.02
_NO_CLIENT = "sandboxes need the package docker: pip install 'manyturn[docker]'"
_IN_CHECKOUT = Path(__file__).resolve().parents[1] / ".ci" / "engine"  # no wheel has it
_REMEDIES = "start Docker or Podman's socket service, or set DOCKER_HOST to an engine's socket (unix:///path)"
if _IN_CHECKOUT.is_file():
    _REMEDIES += ", or run `.ci/engine start`"


class ContainerEngine(BaseModel):
    """What is asked of the engine for each container.

    Attributes:
        image: with Python >= 3.8 and bash; it must declare no volumes.
        limits: of each container.
        runtime: name of one of the engine's runtimes, such as "runsc" (gVisor); its default one if None.
        agent: user id of the agent's commands.
        python: the interpreter for the tool server, a name in the image's PATH or a path.
        margin: seconds beyond a command's own deadline after which the sandbox is given up.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    image: str = "manyturn-python:1"
    limits: SandboxLimits = SandboxLimits()
    runtime: str | None = None
    agent: int = Field(default=1000, gt=0, lt=65_536)
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
        raise EngineUnavailable(f"no container engine answers at {where} ({_told(error)}): {_REMEDIES}") from error


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


def ending(name: str) -> str:
    """How a container ended, as far as the engine still knows, or ""; one that has not gets a second to do so."""
    told = {"container": [name], "event": ["die", "oom"]}
    found = []
    with contextlib.suppress(EngineUnavailable), engine_errors("list events"):
        now = int(time.time())
        for event in client().events(since=now - 3600, until=now + 2, filters=told, decode=True):
            found.append(event["Action"])
            if event["Action"] == "die":
                told_of = event["Actor"]["Attributes"]
                found.append(f"exit status {told_of.get('exitCode') or told_of.get('containerExitCode', '?')}")
                break
    if "oom" in found:
        return "it ran out of memory"
    return found[-1] if found else ""


def _connect() -> Any:
    try:
        from docker import APIClient
        from docker.utils import kwargs_from_env
    except ImportError as error:
        raise EngineUnavailable(_NO_CLIENT) from error
    with engine_errors("be reached"):
        # kwargs_from_env reads DOCKER_HOST and the TLS variables, as every client does.
        return APIClient(version="auto", timeout=_SECONDS, **kwargs_from_env())


def _told(error: BaseException) -> str:
    """The innermost reason of a chain of errors, in one line."""
    inner = error
    while (cause := inner.__cause__ or inner.__context__) is not None:
        inner = cause
    text = str(inner) or type(inner).__name__
    return " ".join(text.split())[:200]
