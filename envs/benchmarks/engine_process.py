"""The process of a benchmark's engine: below a keeper, without this process's variables, shared by its environments."""

import atexit
import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.hosting.handle.env_spec_message import KEEPER

START_SECONDS = 180.0  # imports take up to 10 s, and more on a machine that is busy
_LONGEST_LINE = 32 * 2**20  # bytes
_ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def tested_package(name: str, version: str) -> Distribution:
    """An engine's package in the version that was tested. Raises NeedsSetup; the extra has the package's name."""
    extra = name.replace("_", "-")
    try:
        package = distribution(name)
    except PackageNotFoundError:
        raise NeedsSetup(f"the package {extra} is not installed: pip install 'manyturn[{extra}]'") from None
    if package.version != version:
        raise NeedsSetup(
            f"{extra} {package.version} is installed, and the one that was tested is {version}: "
            f"pip install 'manyturn[{extra}]'"
        )
    return package


class EngineProcess:
    """A process that is spoken to in lines. It ends when this process ends, in whatever way, with all that it started.

    Args:
        command: program and arguments.
        environ: its variables, beside ``PATH`` and ``LANG``.
        folder: in which it runs.
        errors: file for its standard error, which is lost without one.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        errors: IO[bytes] | None = None,
    ):
        self._parent, self._unread = os.getpid(), b""
        self._process = subprocess.Popen(
            [*KEEPER, str(self._parent), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors or subprocess.DEVNULL,
            env={**_ENVIRON, **(environ or {})},
            cwd=folder,
            start_new_session=True,  # what a terminal sends is meant for this process
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self.stdin, self.stdout = self._process.stdin, self._process.stdout

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The keeper's process id; the engine is its child."""
        return self._process.pid

    def write(self, line: bytes) -> None:
        """Write a line. Raises OSError if the process has ended."""
        self.stdin.write(line + b"\n")
        self.stdin.flush()

    def line(self, until: float) -> bytes:
        """The output up to the end of a line, or up to its own end.

        Args:
            until: a time of the monotonic clock. Raises TimeoutError if it comes first.
        """
        while b"\n" not in self._unread:
            if not select.select([self.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError
            chunk = os.read(self.stdout.fileno(), 65536)
            self._unread += chunk
            if not chunk or len(self._unread) > _LONGEST_LINE:
                break
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def kill(self) -> None:
        """End the process and everything that it started, now."""
        if os.getpid() == self._parent:  # a forked process must not end what its parent uses
            self._process.terminate()  # the keeper kills all that is below it
            self._process.wait()

    def close(self, seconds: float = 0.0) -> None:
        """End the process and close its streams.

        Args:
            seconds: that it has to end by itself after its input has ended.
        """
        if os.getpid() != self._parent:
            return
        with contextlib.suppress(OSError):
            self.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self.kill()
        self.stdout.close()


class Shareable(Protocol):
    """A process or a connection that the workers of one engine share."""

    @property
    def alive(self) -> bool: ...

    def close(self) -> None: ...


_Shared = TypeVar("_Shared", bound=Shareable)
_running: dict[tuple[Any, ...], Any] = {}
_lock = threading.Lock()


def shared(start: Callable[..., _Shared], *arguments: Any) -> _Shared:
    """One for all environments of this process: started when first asked for, and again if it has ended.

    Args:
        start: makes it.
        arguments: for ``start``, hashable; each set of them has one of its own.
    """
    key = (os.getpid(), start, *arguments)
    with _lock:
        running = _running.get(key)
        if running is None or not running.alive:
            if running is not None:
                running.close()
                del _running[key]
            running = _running[key] = start(*arguments)
        return running


@atexit.register
def close_all() -> None:
    """End what this process has started."""
    for key in [key for key in _running if key[0] == os.getpid()]:
        _running.pop(key).close()
