"""Hosts and samplers in forked processes, which die and come back at their ports, and runs that play and draw there."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from short_runs import episode_keys, figures, finish, left_behind, missing_and_double, short_run, start
from tally import Tally

from manyturn.serving.env_host import Hosting, host
from manyturn.serving.sampler import sample
from manyturn.serving.server import Listening
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.loop.loop import train

SILENCE = 5.0  # seconds, after which a node that owes an answer counts as lost: more than a busy machine takes
MOST = 10  # strikes of one run: an episode that loses its node twelve times may well be an error
_SECONDS = 300.0  # until a node has to listen, and a run to begin


class Node:
    """A host, or a sampler, in a process of its own at a port that stays the same.

    Args:
        env: the one environment of a host; None for any that is registered.
    """

    def __init__(self, kind: str, env: str | None = None):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url, self._kind = f"http://127.0.0.1:{self.port}", kind
        self._hosting = Hosting(env=env, workers=0)
        self.start()

    def start(self) -> None:
        """Begin, also after the end; it listens on return."""
        self.process = start(self._serve)
        until = time.monotonic() + _SECONDS
        while not self.listens():
            if time.monotonic() > until:
                raise RuntimeError(f"a {self._kind} does not listen at port {self.port}")
            time.sleep(0.01)

    def listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        os.waitpid(self.process, 0)

    def _serve(self) -> None:
        place = Listening(port=self.port)
        if self._kind == "host":
            asyncio.run(host(self._hosting, place, lambda url: None))
        else:
            asyncio.run(sample("cpu", place, lambda url: None))


@contextlib.contextmanager
def nodes(hosts: int, samplers: int, env: str | None = None) -> Iterator[list[Node]]:
    """So many of each, hosts first; ``env`` as for ``Node``. Raises RuntimeError where a port stays open at the end."""
    found = [Node("host", env) for _ in range(hosts)] + [Node("sampler") for _ in range(samplers)]
    try:
        yield found
    finally:
        for node in found:
            node.kill()
    if left := [node.port for node in found if node.listens()]:
        raise RuntimeError(f"the ports {left} are still open")


def placed(hosts: Sequence[str], samplers: Sequence[str], **changes: Any) -> RunConfig:
    """A run in which most of the time is play."""
    placement = {"kind": "static", "hosts": list(hosts), "samplers": list(samplers), "silence": SILENCE, "wait": 300.0}
    maze = {"id": "manyturn/Maze-v0", "args": {"max_turns": 12}}
    elsewhere = {"placement": placement} if hosts or samplers else {}
    return short_run(**{**elsewhere, "env": maze, "warmup": {"episodes": 0}, "evaluation": {"limit": 2}, **changes})


def another(folder: Path) -> Path:
    """Where one more run can be."""
    return folder / f"stormy-{len(list(folder.iterdir()))}"


def work_on(path: Path, config: RunConfig) -> None:
    """Begin a run, or continue it."""
    resume = (path / "config.toml").is_file()
    asyncio.run(train(None if resume else config, path, resume=resume))


class Calm:
    """The run without faults, which every other one has to end like.

    Args:
        work: brings it to its end; None: in one process, without nodes.
    """

    def __init__(self, folder: Path, work: Callable[[Path], None] | None = None):
        if work is None:
            finish(folder, lambda path: work_on(path, placed((), ())))
        else:
            work(folder)
        self._weights, self._keys = _learnt(folder), episode_keys(folder)

    def judge(self, path: Path, status: int, struck: int, resumes: int = 0) -> Tally:
        """What became of so many faults that a run met.

        Args:
            status: how it ended at last.
            resumes: how often it was continued on the way.
        """
        if status:
            return Tally(struck, lost=1, resumes=resumes, notes=[f"{path.name} ended with status {status}"])
        lost, double = missing_and_double(episode_keys(path), self._keys)
        equal, orphans = _learnt(path) == self._weights, left_behind(path)
        sound = equal and not lost and not double
        return Tally(
            injected=struck,
            survived=struck if sound else 0,
            lost=lost,
            duplicated=double,
            misattributed=int(not equal),
            resumes=resumes,
            bit_exact=resumes if equal else 0,
            orphans=len(orphans),
            notes=[] if sound else [f"{path.name} differs from the undisturbed run"],
        )


def _learnt(path: Path) -> object:
    """The weights at the end, and the losses on the way; figures of nodes and of what was tried again are their own."""
    told = figures(path)
    return told["summary"]["weights"], [line.get("loss") for line in told["metrics"]]


def has_begun(path: Path, child: int) -> bool:
    """Wait until a run plays its first step; at its beginning it waits for all of its nodes. False if it has ended."""
    until = time.monotonic() + _SECONDS
    while not (path / "checkpoints/step_000000").is_dir() and time.monotonic() < until and is_running(child):
        time.sleep(0.005)
    return is_running(child)


def wait_for(came: Callable[[], object], child: int, seconds: float = 200.0) -> None:
    """Wait until something has come. Raises AssertionError where it has not in time, or a child ends before."""
    until = time.monotonic() + seconds
    while not came():
        assert is_running(child) and time.monotonic() < until, "what was waited for never came"
        time.sleep(0.002)


def is_running(child: int) -> bool:
    """Whether a child has not ended; it is still to be waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def rest(child: int, seconds: float, wakes: Callable[[], bool] = lambda: False) -> bool:
    """Wait, unless a child ends before; says whether it still runs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and is_running(child) and not wakes():
        time.sleep(0.005)
    return is_running(child)
