"""A folder and processes of this machine in place of a container: for tests whose code is trusted, and for no other."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from manyturn.containers.sandbox import Ran

_BYTECODE = tempfile.TemporaryDirectory()  # of Python's own modules too, and so for all


class LocalSandbox:
    """What the search for tasks needs of a sandbox."""

    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())

    def run(self, script, *, seconds=30.0, folder="", environ=None, report=False) -> Ran:
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        variables = os.environ | {"PATH": path} | dict(environ or {})
        variables |= {"PYTHONPYCACHEPREFIX": _BYTECODE.name, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        began, told = time.monotonic(), self.folder / "report"
        with told.open("wb") as stream:
            command = ["bash", "-c", f"exec 3>&{stream.fileno()}\n{script}"]
            done = subprocess.run(
                command, cwd=work, env=variables, capture_output=True, timeout=seconds, pass_fds=[stream.fileno()]
            )
        output = (done.stdout + done.stderr).decode()
        return Ran(done.returncode, output, time.monotonic() - began, False, told.read_bytes() if report else b"")

    def read(self, path: str, limit: int = 1_000_000) -> bytes:
        return (self.folder / "work" / path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        file = self.folder / "work" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def stop(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
