"""Servers of vLLM's on this machine, started as a user starts them."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from manyturn.agents.engine.vllm.authentication import VARIABLE

TOKEN = "a-token-for-the-tests-of-servers"
_PATIENCE = 1800.0  # seconds until a server is up on a machine that is busy with something else


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Served:
    """One server, with a token. It is begun at once, and ``wait`` says when it is up.

    Args:
        model: folder of the model.
        more: further words of the command.
    """

    model: Path
    more: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.log, self.address = self.model.with_name(f"{self.port}.log"), f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        words = [sys.executable, "-m", "manyturn.agents.engine.vllm.server", str(self.model), "--port", str(self.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*words, "--kv-gib", "0.25", *self.more],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, VARIABLE: TOKEN},
            )

    def wait(self) -> str:
        """Its address, once it answers."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                found = httpx.get(self.address + "/health", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
                if found.status_code == 200:
                    return self.address
            except httpx.HTTPError:
                pass
            time.sleep(1)
        raise AssertionError(self.log.read_text()[-3000:])

    def kill(self) -> None:
        """End it as a crash would: no process of it says good-bye."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.kill()

    def workers(self) -> list[int]:
        """Ids of the processes in its session that hold weights."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                session = int(entry.read_text().rpartition(")")[2].split()[3])
                title = (entry.parent / "cmdline").read_text(errors="replace")
            except (OSError, ValueError):
                continue
            if session == self.process.pid and "VLLM::Worker" in title:
                found.append(int(entry.parent.name))
        return found
