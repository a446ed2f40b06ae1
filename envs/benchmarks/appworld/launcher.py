"""The process that forks AppWorld's own: one for each process of this side, shared by its environments.

It stands below a keeper, which ends everything below it when this process ends, in whatever way.
"""

import atexit
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from manyturn.envs.benchmarks.appworld.server_client import AppWorldError
from manyturn.envs.hosting.handle import process_reaper

_MAIN = Path(__file__).with_name("launcher_main.py")
_START_SECONDS = 180.0  # imports take 10 s, and more on a machine that is busy
_LONGEST_PLACE = 70  # of the 107 bytes of a socket's path
_LONGEST_ANSWER = 32 * 2**20  # bytes


class Launcher:
    """Starts and grades episodes' processes; see ``launcher_main``. Raises AppWorldError.

    Args:
        python: the interpreter of AppWorld's environment.
        data: AppWorld's folder ``data``.
        confined: confine the processes of episodes.
    """

    def __init__(self, python: str, data: Path, confined: bool):
        if len(tempfile.gettempdir()) > _LONGEST_PLACE:
            raise AppWorldError(f"{tempfile.gettempdir()} is too long a path for sockets: set TMPDIR to a shorter one")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self._scratch = tempfile.mkdtemp(prefix="manyturn-appworld-")
        self._lock = threading.Lock()
        self._unread = b""
        environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
        environ |= {"HOME": self._scratch, "TMPDIR": self._scratch, "PYTHON_DOTENV_DISABLED": "1"}
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(process_reaper.__file__), str(os.getpid())),
                    *(python, "-P", "-s", str(_MAIN), str(data), self._scratch, str(int(confined))),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environ,
                start_new_session=True,  # what a terminal sends is meant for this process
            )
        except OSError as error:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise AppWorldError(f"AppWorld could not be started: {error}") from error
        try:
            self._answer(_START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, within: float, /, **request: Any) -> Any:
        """The answer to one request. If there is none in time, everything is ended."""
        with self._lock:
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except OSError:
                raise AppWorldError(f"AppWorld's process is gone: {self._last_words()}") from None
            return self._answer(within)

    def close(self) -> None:
        """End the process, and everything that it started."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # it ends by itself, and removes its files
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.terminate()  # the keeper kills all that is below it
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _answer(self, seconds: float) -> Any:
        line = b""
        try:
            line = self._line(time.monotonic() + seconds)
            message = json.loads(line)
            if "error" not in message:
                return message["value"]
        except TimeoutError:
            why = f"gave no answer within {seconds:g} s"
        except (ValueError, LookupError, TypeError):
            why = f"broke off: {line[:200]!r}"
        except BaseException:
            self._process.terminate()  # its answer would be taken for the next one
            raise
        else:
            raise AppWorldError(str(message["error"])[:2000])
        self._process.terminate()
        self._process.wait()
        raise AppWorldError(f"AppWorld's process {why} {self._last_words()}")

    def _line(self, until: float) -> bytes:
        """The output up to the end of a line, or up to its end. Raises TimeoutError."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            if not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError
            chunk = os.read(descriptor, 65536)
            self._unread += chunk
            if not chunk or len(self._unread) > _LONGEST_ANSWER:
                break
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _last_words(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), 1000, max(0, size - 1000)).decode(errors="replace").strip() or "(silent)"


_launchers: dict[tuple[int, str, Path, bool], Launcher] = {}
_lock = threading.Lock()


def shared(python: str, data: Path, confined: bool) -> Launcher:
    """This process's launcher, started when first asked for, and again if it has died. Raises AppWorldError."""
    key = (os.getpid(), python, data, confined)
    with _lock:
        launcher = _launchers.get(key)
        if launcher is None or not launcher.alive:
            if launcher is not None:
                launcher.close()
                del _launchers[key]
            launcher = _launchers[key] = Launcher(python, data, confined)
        return launcher


@atexit.register
def _close_all() -> None:
    for (process, *_), launcher in _launchers.items():
        if process == os.getpid():
            launcher.close()
    _launchers.clear()
