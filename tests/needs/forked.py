"""Programs that need the trainer, in a process of their own, without the seconds that each would take to import it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest


class Forking:
    """See ``forking.py``, which is started at the first call."""

    def __init__(self, folder: Path):
        self._folder, self._count = folder, 0
        self._process: subprocess.Popen[str] | None = None

    def __call__(
        self, *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """What ``subprocess.run([sys.executable, *words], ...)`` returns; words begin with -m MODULE, or a script."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", Path(__file__).with_name("forking.py")],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._count += 1
        out, err = (self._folder / f"{self._count}.{name}" for name in ("out", "err"))
        asked = {"words": list(map(str, words)), "folder": str(cwd or Path.cwd()), "out": str(out), "err": str(err)}
        print(json.dumps(asked | {"environ": dict(env or os.environ)}), file=self._process.stdin, flush=True)
        status = int(self._process.stdout.readline())
        return subprocess.CompletedProcess(list(map(str, words)), status, out.read_text(), err.read_text())

    def end(self) -> None:
        """End it, with a program that hangs."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    """Runs ``python WORDS`` in a forked process."""
    forking = Forking(tmp_path_factory.mktemp("forked"))
    yield forking
    forking.end()
