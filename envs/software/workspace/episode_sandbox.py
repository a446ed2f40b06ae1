"""The sandbox of an episode, which other episodes may need meanwhile.

A process has few sandboxes and may have hundreds of episodes under way. So an episode keeps its sandbox from turn to
turn only as long as nobody waits for one; then the files of the episode that has rested longest are put aside, on disk,
and come back into another sandbox at its next turn. An agent cannot tell: nothing but files outlives a command anyway.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.pool import SandboxPool, the_pool
from manyturn.containers.sandbox import (
    WORKSPACE,
    EngineUnavailable,
    Ran,
    SandboxLost,
    SandboxOverrun,
    SandboxRefused,
    Snapshot,
)
from manyturn.envs.software.workspace.workspace_swap import Parcel, ParkedFiles

_SCRATCH = "/tmp"
_MOST_SCRATCH = 8_000_000  # bytes; a larger scratch folder is not kept
_PACK = f'[ -z "$(ls -A {_SCRATCH})" ] || tar -C {_SCRATCH} -cf - . | head -c {_MOST_SCRATCH + 1} >&3'
_CARRIER = f"{WORKSPACE}/.manyturn-scratch"
_UNPACK = f"tar -C {_SCRATCH} -xf {_CARRIER} 2>/dev/null; rm -f {_CARRIER}"

_spool = ParkedFiles()
os.register_at_fork(after_in_child=_spool.abandon)
_resting: "weakref.WeakKeyDictionary[EpisodeSandbox, None]" = weakref.WeakKeyDictionary()  # the longest first


class Files(NamedTuple):
    """Files that an agent has written: the workspace, and a tar of the scratch folder (empty if that is)."""

    workspace: Snapshot
    scratch: bytes = b""


class EpisodeSandbox:
    """A sandbox, as far as an episode uses one; see ``manyturn.containers.sandbox.Sandbox`` for the methods.

    Raises EngineUnavailable where no sandbox can be had, besides what a sandbox raises.

    Args:
        engine: what sandboxes are made with.
        files: what is there in the beginning.

    A sandbox that was lost stays lost: the workspace is of no use afterwards.
    """

    def __init__(self, engine: ContainerEngine, files: Files):
        self._engine = engine
        self._aside: Files | _Aside | SandboxLost = files
        self._sandbox: DockerSandbox | None = None
        self._lost: weakref.finalize | None = None
        self._busy = threading.Lock()

    def run(
        self,
        script: str,
        *,
        seconds: float = 30.0,
        folder: str = WORKSPACE,
        environ: Mapping[str, str] | None = None,
        report: bool = False,
    ) -> Ran:
        with self._present() as sandbox:
            return sandbox.run(script, seconds=seconds, folder=folder, environ=environ, report=report)

    def read(self, path: str, limit: int = 1_000_000) -> bytes:
        with self._present() as sandbox:
            return sandbox.read(path, limit)

    def write(self, path: str, content: bytes) -> None:
        with self._present() as sandbox:
            sandbox.write(path, content)

    def snapshot(self) -> Snapshot:
        with self._present() as sandbox:
            return sandbox.snapshot()

    def files(self) -> Files:
        """All that has been written. Raises SandboxRefused if that is too much."""
        with self._present() as sandbox:
            return _files(sandbox)

    @contextlib.contextmanager
    def lent(self, back: bool) -> Iterator[DockerSandbox]:
        """The sandbox for another purpose.

        Args:
            back: whether the files are wanted again.
        """
        with self._present() as sandbox:
            restored = _files(sandbox) if back else None
            yield sandbox
            if restored is not None:
                _lay(sandbox, restored)

    def close(self) -> None:
        """Give the sandbox back; may be called twice."""
        with self._busy:
            self._aside = SandboxLost("the sandbox is closed")
            self._leave()

    @contextlib.contextmanager
    def _present(self) -> Iterator[DockerSandbox]:
        with self._busy:
            if self._sandbox is None:
                self._sit_down()
            assert self._sandbox is not None
            _resting.pop(self, None)
            try:
                yield self._sandbox
            finally:
                _resting[self] = None

    def _sit_down(self) -> None:
        if isinstance(self._aside, SandboxLost):
            raise self._aside
        sandbox = _take(self._engine)
        # An episode that is forgotten without an end gives its sandbox back as well.
        self._lost = weakref.finalize(self, _give_back, the_pool(), sandbox)
        self._lost.atexit = False
        self._sandbox = sandbox
        _lay(sandbox, self._aside if isinstance(self._aside, Files) else self._aside.fetched())
        self._aside = SandboxLost("the sandbox was lost")

    def _leave(self) -> None:
        self._sandbox = None
        _resting.pop(self, None)
        if self._lost is not None:
            self._lost()

    def put_aside(self) -> bool:
        """Make way for others, unless this one is at work, has no sandbox, or has too much to put aside."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            if self._sandbox is None:
                return False
            try:
                aside = _Aside.of(_files(self._sandbox))
            except SandboxLost as lost:
                aside = lost.with_traceback(None)  # its own episode hears of it at its next turn
            if aside is None:
                return False
            self._aside = aside
            self._leave()
            return True
        except SandboxRefused:
            return False
        finally:
            self._busy.release()


class _Aside(NamedTuple):
    """Files that were put aside."""

    key: str
    parcel: Parcel

    @classmethod
    def of(cls, files: Files) -> "_Aside | None":
        """None where the disk has no room."""
        parcel = _spool.lay_down((files.workspace.archive, files.scratch))
        return None if parcel is None else cls(files.workspace.key, parcel)

    def fetched(self) -> Files:
        """The files. Raises SandboxOverrun."""
        parts = _spool.take_up(self.parcel)
        if parts is None:
            raise SandboxOverrun("its files took more room on disk than there is for the episodes that rest")
        return Files(Snapshot(self.key, parts[0]), parts[1])


def _take(engine: ContainerEngine) -> DockerSandbox:
    """A sandbox, if need be from the episode that has rested longest."""
    while _resting:
        with contextlib.suppress(EngineUnavailable):
            return the_pool().take(engine, seconds=0.0)
        if not any(workspace.put_aside() for workspace in list(_resting)):
            break
    return the_pool().take(engine)


def _give_back(pool: SandboxPool, sandbox: DockerSandbox) -> None:
    pool.give_back(sandbox)


def _files(sandbox: DockerSandbox) -> Files:
    scratch = sandbox.run(_PACK, report=True).report
    return Files(sandbox.snapshot(), scratch if len(scratch) <= _MOST_SCRATCH else b"")


def _lay(sandbox: DockerSandbox, files: Files) -> None:
    sandbox.restore(files.workspace)
    if files.scratch:
        with contextlib.suppress(SandboxRefused):  # there was just room for the workspace
            sandbox.write(_CARRIER, files.scratch)
            sandbox.run(_UNPACK)
