"""Owner of a container: the process it belongs to, in words that another process can check."""

import contextlib
import hashlib
import os
import socket
from pathlib import Path
from typing import NamedTuple

_HOST, _PID, _STARTED = "manyturn.host", "manyturn.pid", "manyturn.started"


class Owner(NamedTuple):
    """A process.

    Attributes:
        host: of its machine, its boot and its PID namespace.
        pid: in that namespace.
        started: when, in clock ticks since boot; empty where the system does not say.
    """

    host: str
    pid: int
    started: str

    @property
    def labels(self) -> dict[str, str]:
        return {_HOST: self.host, _PID: str(self.pid), _STARTED: self.started}

    @property
    def dead(self) -> bool:
        """True if it has ended for certain; processes of other machines never count."""
        if self.host != _host():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return _started(self.pid) != self.started


def this_process() -> Owner:
    """The caller's."""
    return Owner(_host(), os.getpid(), _started(os.getpid()))


def read_labels(labels: dict[str, str]) -> Owner | None:
    """The owner that labels name, if they name one."""
    try:
        return Owner(labels[_HOST], int(labels[_PID]), labels[_STARTED])
    except (KeyError, ValueError):
        return None


def _started(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _host() -> str:
    identity = [socket.gethostname()]
    with contextlib.suppress(OSError):  # not every system has them
        identity += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
