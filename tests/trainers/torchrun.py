"""Programs in several ranks, started by torchrun, each in a session of its own whose processes can be counted."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path


class Torchrun:
    """A program in ranks.

    Args:
        words: as they stand after ``torchrun --nproc-per-node N``.
        log: a file for what it says.
    """

    def __init__(self, ranks: int, *words: object, log: Path, path: str = ""):
        self._mark, self._log = uuid.uuid4().hex, log
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", ranks, *words]
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "MARK": self._mark, "PYTHONPATH": path}
        with log.open("w") as out:
            self._process = subprocess.Popen(
                list(map(str, command)), env=environ, stdout=out, stderr=out, start_new_session=True
            )

    def kill(self, rank: int, once: Callable[[], bool]) -> None:
        """End a rank as ``kill -9`` does, once something is so."""
        while not once():
            assert self._process.poll() is None, self._log.read_text()
            time.sleep(0.01)
        ranks = [number for number in self.left() if _parent(number) == self._process.pid]  # and not what they started
        [process] = [number for number in ranks if f"RANK={rank}" in _environ(number)]
        os.kill(process, signal.SIGKILL)

    def signal(self, number: signal.Signals, once: Callable[[], bool]) -> None:
        """Send torchrun a signal, once something is so."""
        while not once():
            assert self._process.poll() is None, self._log.read_text()
            time.sleep(0.01)
        self._process.send_signal(number)

    def ended(self, within: float = 240) -> tuple[int, str]:
        """The exit status, and all that was said."""
        status = self._process.wait(within)
        return status, self._log.read_text()

    def left(self) -> list[int]:
        """The processes that are there."""
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [number for number in numbers if f"MARK={self._mark}" in _environ(number)]


def _environ(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/environ").read_text(errors="replace").split("\0")
    except OSError:
        return []


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
