"""A cluster of Ray whose nodes are processes on this machine, and what runs of it."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from manyturn.envs.hosting.handle.env_spec_message import KEEPER


@contextlib.contextmanager
def ray_nodes(count: int, *words: str, second: str = "127.0.0.3") -> Iterator[str]:
    """The address of a cluster with so many nodes on this machine, each started by ``ray start`` as on a machine.

    Args:
        words: further ones for each node.
        second: address of the second node.
    """
    folder = tempfile.mkdtemp(prefix="mt-nodes-")
    with socket.socket() as found:
        found.bind(("127.0.0.2", 0))
        address = f"127.0.0.2:{found.getsockname()[1]}"
    head = ("--head", f"--port={address.rpartition(':')[2]}", f"--temp-dir={folder}", "--include-dashboard=false")
    running = list[subprocess.Popen[bytes]]()
    environ = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}  # actors as quick as the run
    try:
        for number in range(count):
            own = head if number == 0 else (f"--address={address}",)
            ray = (
                sys.executable,
                "-P",
                "-m",
                "ray.scripts.scripts",
                "start",
                "--block",
                "--num-cpus=1",
                "--num-gpus=0",
            )
            place = second if number == 1 else f"127.0.0.{number + 2}"
            node = (f"--node-ip-address={place}", "--num-cpus=1", "--num-gpus=0", "--object-store-memory=83886080")
            command = (*KEEPER, str(os.getpid()), *ray, *node, *own, *words)
            said = (Path(folder) / f"node_{number}").open("wb")
            with said:
                running.append(subprocess.Popen(command, env=environ, stdout=said, stderr=said))
            _wait_for(Path(folder) / f"node_{number}", running[-1])
        yield address
    finally:
        for one in running:
            one.terminate()
        for one in running:
            one.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(said: Path, node: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 600
    while "Ray runtime started" not in (text := said.read_text(errors="replace")):
        if node.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"ray start ended, or took too long:\n{text}")
        time.sleep(0.2)


def ray_processes(*words: str) -> list[int]:
    """Ids of processes whose command line has all of these words, such as those of actors: ``ray::RayHost``."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if folder.name.isdecimal() and all(word in line for word in words):
                found.append(int(folder.name))
    return found


def above(pid: int) -> list[int]:
    """Ids of the processes that started one, the nearest first."""
    with contextlib.suppress(OSError):
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return [parent, *above(parent)] if parent else []
    return []


def ray_processes_of(run: int, *words: str) -> list[int]:
    """Those of these words that a run has started."""
    return [one for one in ray_processes(*words) if run in above(one)]


def placers(run: int) -> list[int]:
    """Ids of the processes that speak with Ray for a run."""
    return [one for one in _placing(run) if one not in ray_processes("keeper.py")]


def placers_keepers(run: int) -> list[int]:
    """Ids of the processes that hold those."""
    return [one for one in _placing(run) if one in ray_processes("keeper.py")]


def _placing(run: int) -> list[int]:
    found = ray_processes_of(run, "manyturn.serving.ray.launcher")
    assert len(found) == 2
    return found
