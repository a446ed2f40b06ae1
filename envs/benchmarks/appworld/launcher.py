"""The process that forks AppWorld's own: one for each process of this side, shared by its environments.

It stands below a keeper, which ends everything below it when this process ends, in whatever way.
"""

import json
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from manyturn.envs.benchmarks import engine_process
from manyturn.envs.benchmarks.appworld.server_client import AppWorldError
from manyturn.envs.benchmarks.engine_process import START_SECONDS, EngineProcess

_MAIN = Path(__file__).with_name("launcher_main.py")
_LONGEST_PLACE = 70  # of the 107 bytes of a socket's path


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
        environ = {"HOME": self._scratch, "TMPDIR": self._scratch}
        environ |= {"PYTHONHASHSEED": "0", "PYTHON_DOTENV_DISABLED": "1"}
        command = [python, "-P", "-s", str(_MAIN), str(data), self._scratch, str(int(confined))]
        try:
            self._process = EngineProcess(command, environ, errors=self._log)
        except OSError as error:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise AppWorldError(f"AppWorld could not be started: {error}") from error
        try:
            self._answer(START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._process.alive

    @property
    def pid(self) -> int:
        """The keeper's process id."""
        return self._process.pid

    def ask(self, within: float, /, **request: Any) -> Any:
        """The answer to one request. If there is none in time, everything is ended."""
        with self._lock:
            try:
                self._process.write(json.dumps(request).encode())
            except OSError:
                raise AppWorldError(f"AppWorld's process is gone: {self._last_words()}") from None
            return self._answer(within)

    def close(self) -> None:
        """End the process, and everything that it started."""
        self._process.close(5.0)  # it ends by itself, and removes its files
        self._log.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _answer(self, seconds: float) -> Any:
        line = b""
        try:
            line = self._process.line(time.monotonic() + seconds)
            message = json.loads(line)
            if "error" not in message:
                return message["value"]
        except TimeoutError:
            why = f"gave no answer within {seconds:g} s"
        except (ValueError, LookupError, TypeError):
            why = f"broke off: {line[:200]!r}"
        except BaseException:
            self._process.kill()  # its answer would be taken for the next one
            raise
        else:
            raise AppWorldError(str(message["error"])[:2000])
        self._process.kill()
        raise AppWorldError(f"AppWorld's process {why} {self._last_words()}")

    def _last_words(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), 1000, max(0, size - 1000)).decode(errors="replace").strip() or "(silent)"


def shared(python: str, data: Path, confined: bool) -> Launcher:
    """This process's launcher, started when first asked for, and again if it has died. Raises AppWorldError."""
    return engine_process.shared(Launcher, python, data, confined)
