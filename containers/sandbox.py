"""Sandbox: its operations, with any engine."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field, model_validator

WORKSPACE = "/workspace"
"""The folder that the agent works in, and all that a snapshot holds."""
SCRATCH = ("/tmp", "/dev/shm")
"""The other folders in which an agent can write."""
SERVER_MB = 32
"""Of a container's memory, for the tool server."""


class EngineUnavailable(RuntimeError):
    """No container engine answers, or it cannot enforce what is demanded. Names the reason and the remedies."""


class SandboxLost(RuntimeError):
    """The tool server, its container or the engine is gone: never an answer to an action."""


class SandboxOverrun(SandboxLost):
    """The container ended because what runs or lies in it took more than it may: the doing of whoever wrote that.

    An environment ends the episode as a failure. An error would be tried again, and could be brought about at will.
    """


class SandboxRefused(ValueError):
    """The tool server declined a request: a path outside, a file too large, a snapshot that is none."""


def overrun_behind(error: BaseException) -> SandboxOverrun | None:
    """The overrun that an error is, or that caused it, if there is one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, SandboxOverrun):
        cause = cause.__cause__
    return cause


class SandboxLimits(BaseModel):
    """Limits of one container. The engine enforces all of them, or is refused at start."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    memory_mb: int = Field(default=512, ge=64)
    cpus: float = Field(default=1.0, gt=0)
    processes: int = Field(default=128, ge=16)
    workspace_mb: int = Field(default=64, ge=1)
    scratch_mb: int = Field(default=64, ge=1)
    files: int = Field(default=20_000, ge=100)
    """Inodes of the workspace, and of each scratch folder."""
    output_bytes: int = Field(default=10_000, ge=100)
    """Kept of a command's output: the first half and the last."""

    @model_validator(mode="after")
    def _files_fit(self) -> "SandboxLimits":
        """Files lie in memory: an agent that fills its folders must not end its own container by that."""
        least = self.workspace_mb + len(SCRATCH) * self.scratch_mb + SERVER_MB
        if self.memory_mb < least:
            raise ValueError(
                f"memory_mb is {self.memory_mb}, but files lie in memory too: give at least {least} for "
                f"workspace_mb = {self.workspace_mb} and scratch_mb = {self.scratch_mb}, or make those smaller"
            )
        return self


class Ran(NamedTuple):
    """Result of a command.

    Attributes:
        status: the exit status, 128 + n after signal n.
        output: stdout and stderr as they came, head and tail, with the number of bytes left out between them.
        seconds: how long it took inside.
        timed_out: it was killed at the deadline, with all that it had started.
        report: what was written to file descriptor 3, its first 8 MiB; empty unless it was asked for.
    """

    status: int
    output: str
    seconds: float
    timed_out: bool = False
    report: bytes = b""


class Snapshot(NamedTuple):
    """The files of a workspace.

    Attributes:
        key: hash of paths, kinds, executable bits and contents, ignoring times: equal keys are equal workspaces.
        archive: an uncompressed tar.
    """

    key: str
    archive: bytes


class Sandbox(Protocol):
    """One container in which an agent's commands run as a user without rights.

    Every method may raise SandboxLost. None of them runs anything outside of the container.
    """

    def start(self) -> None:
        """Start the container and its tool server. Raises EngineUnavailable."""

    def run(
        self,
        script: str,
        *,
        seconds: float = 30.0,
        folder: str = WORKSPACE,
        environ: Mapping[str, str] | None = None,
        report: bool = False,
    ) -> Ran:
        """Run a script by ``bash`` in a session of its own; what it leaves running is killed.

        Neither variables nor the current folder pass from one script to the next: files do, in the workspace and in
        the scratch folders ``/tmp`` (which is HOME) and ``/dev/shm``. Its input is empty. With ``report``, file
        descriptor 3 is a pipe to the tool server.

        Raises:
            SandboxRefused: there is no such folder, or bash cannot be started with such a script or environment.
        """
        ...

    def read(self, path: str, limit: int = 1_000_000) -> bytes:
        """A regular file's content; links are not followed out of the workspace. Raises SandboxRefused."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Replace a file of the workspace, and make the folders above it. Raises SandboxRefused."""

    def snapshot(self) -> Snapshot:
        """The files of the workspace, without caches of bytecode and of pytest. Processes are not part of it.

        Raises:
            SandboxRefused: it holds more than a snapshot may (``files``, ``workspace_mb``, a third of the memory), or
                a path that is too long.
        """
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Empty workspace and scratch folders and unpack a snapshot. One that is none changes nothing."""

    def stop(self) -> None:
        """Remove the container; may be called twice."""
