"""A world of AppWorld for one episode at a time: in a process forked for it, or at a server that somebody runs."""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from manyturn.envs.benchmarks.appworld.launcher import Launcher, shared
from manyturn.envs.benchmarks.appworld.server_client import (
    Address,
    AgentBroke,
    AppWorldError,
    Brief,
    Grade,
    Server,
    grade_of,
)
from manyturn.envs.contract.random_keys import digest

_SECONDS = 60.0  # for what is no code of the agent
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class World(Protocol):
    """Every method raises AppWorldError; AgentBroke where the agent's code is to blame for it."""

    def begin(self, task: str) -> Brief:
        """Leave the world before, if any, and make a task's."""
        ...

    def execute(self, code: str) -> str: ...

    def completed(self) -> bool: ...

    def grade(self) -> Grade:
        """The episode's end."""
        ...

    def close(self) -> None: ...


class ForkedWorld:
    """A process of its own for each episode, and another for the grade.

    Args:
        python: the interpreter of AppWorld's environment.
        data: AppWorld's folder ``data``.
        seconds: that code may run at a time.
        confined: confine those processes.
    """

    _server: Server  # of the episode

    def __init__(self, python: str, data: Path, seconds: int, confined: bool):
        self._place = (python, data, confined)
        self._seconds = seconds
        self._episode: tuple[Launcher, int] | None = None

    def begin(self, task: str) -> Brief:
        self.close()
        launcher = shared(*self._place)
        started = launcher.ask(_SECONDS, op="play", task=task)
        self._episode = (launcher, started["pid"])
        self._server = Server(Address(started["socket"]), _SECONDS)
        brief = self._server.initialize(task, self._seconds, load_ground_truth=False)
        launcher.ask(_SECONDS, op="keep", pid=started["pid"])
        return brief

    def execute(self, code: str) -> str:
        with self._blamed():
            return self._server.execute(code)

    def completed(self) -> bool:
        with self._blamed():
            return self._server.completed()

    def grade(self) -> Grade:
        assert self._episode is not None
        launcher, pid = self._episode
        verdict = launcher.ask(3 * _SECONDS, op="grade", pid=pid, seconds=_SECONDS)
        if verdict["record"] is not None:
            return grade_of(verdict["record"])._replace(tampered=verdict["tampered"])
        if verdict["tampered"]:
            return Grade(1, 0, 0, verdict["tampered"])
        raise AgentBroke(f"what it left cannot be graded: {verdict['why']}")

    @contextlib.contextmanager
    def _blamed(self) -> Iterator[None]:
        """The process ran for this episode alone, and answered before the agent's code came."""
        try:
            yield
        except AppWorldError as error:
            if self._episode is None or not self._episode[0].alive:
                raise
            raise AgentBroke(str(error)) from None

    def close(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None and episode[0].alive:
            with contextlib.suppress(AppWorldError):  # what hangs is ended with its launcher
                episode[0].ask(_SECONDS, op="end", pid=episode[1])


class ServedWorld:
    """One of the servers at some addresses, claimed for as long as this is open.

    A server holds one world, and two episodes of one task would mix in it unseen: so a name is taken that only one
    process of the machine can have at a time. Others who use the server besides this project are not kept away.

    Args:
        urls: such as ``http://127.0.0.1:8000``.
        seconds: that code may run at a time.
    """

    _server: Server  # the one that is claimed

    def __init__(self, urls: Sequence[str], seconds: int):
        self._urls, self._seconds = urls, seconds
        self._claim: socket.socket | None = None

    def begin(self, task: str) -> Brief:
        if self._claim is None:
            self._claim, url = self._claimed()
            self._server = Server(address_of(url), _SECONDS)
        return self._server.initialize(task, self._seconds, experiment_name="manyturn")

    def execute(self, code: str) -> str:
        return self._server.execute(code)

    def completed(self) -> bool:
        return self._server.completed()

    def grade(self) -> Grade:
        return self._server.evaluate()

    def close(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.close()

    def _claimed(self) -> tuple[socket.socket, str]:
        for url in self._urls:
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0manyturn-appworld-{digest(address_of(url))}")
                return claim, url
            except OSError:
                claim.close()
        raise AppWorldError(
            f"every server is in use ({', '.join(self._urls)}): run one for each environment, and give all to url"
        )


def address_of(url: str) -> Address:
    """The address of a url. Raises ValueError unless it is ``http://`` and of this machine."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK or not parts.port or parts.path not in ("", "/"):
        raise ValueError(
            f"the url of an AppWorld server is one of this machine, http://127.0.0.1:PORT, not {url}: to reach one "
            "elsewhere, forward its port"
        )
    return Address(parts.hostname, parts.port)
