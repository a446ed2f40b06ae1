"""No container outlives the process that it belongs to."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from running import is_there

from manyturn.containers.docker import container_config
from manyturn.containers.engine import owner
from manyturn.containers.engine.container_engine import LABEL, ContainerEngine, client, remove
from manyturn.containers.engine.owner import Owner, read_labels, this_process
from manyturn.containers.engine.preflight import examined
from manyturn.containers.engine.reaper import reap


@contextmanager
def _client(what: str, image: str) -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, "-P", str(Path(__file__).parents[1] / "clients.py"), what, image]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _say(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _is_gone(name: str, seconds: float = 20.0) -> bool:
    last = time.monotonic() + seconds
    while is_there(name) and time.monotonic() < last:
        time.sleep(0.05)
    return not is_there(name)


def test_a_process_that_is_killed_in_the_middle_of_a_command_leaves_no_container(engine: str) -> None:
    with _client("hold", engine) as process:
        name = _say(process)
        assert is_there(name)
        process.kill()
        assert _is_gone(name)


def test_a_fork_neither_uses_nor_keeps_its_parents_sandboxes(engine: str) -> None:
    with _client("fork", engine) as process:
        name = _say(process)
        assert _say(process) == "SandboxLost"
        other = _say(process)
        assert other != name and _say(process) == "from the child"
        assert is_there(name)
        process.kill()  # the parent only
        assert _is_gone(name)
        assert is_there(other)
    assert _is_gone(other)


def test_a_process_that_ends_stops_its_sandboxes_itself(engine: str) -> None:
    with _client("leave", engine) as process:
        names = [_say(process), _say(process)]
        assert process.wait(60) == 0
        assert not any(map(is_there, names))
        assert not client().containers(all=True, filters={"name": f"manyturn-{process.pid}-"})


@contextmanager
def _left_behind(image: str, name: str, whose: Owner | None) -> Iterator[str]:
    """A container that does not end by itself."""
    asked = container_config.arguments(ContainerEngine(image=image), name, 1000, examined().podman)
    asked |= {"entrypoint": ["sleep", "1000"], "labels": {LABEL: "1", **(whose.labels if whose else {})}}
    client().create_container(**asked)
    try:
        client().start(name)
        yield name
    finally:
        remove(name)


@pytest.mark.deep
def test_the_reaper_takes_what_dead_processes_left_and_nothing_else(engine: str) -> None:
    me = this_process()
    ended = subprocess.Popen(["true"])
    ended.wait()
    owners = {
        "dead": me._replace(pid=ended.pid),
        "again": me._replace(started="1"),  # its number was given to another process
        "alive": me,
        "elsewhere": me._replace(host="x", pid=ended.pid),
        "unsaid": None,
    }
    names = {what: f"manyturn-test-{os.getpid()}-{what}" for what in owners}
    with (
        _left_behind(engine, names["dead"], owners["dead"]),
        _left_behind(engine, names["again"], owners["again"]),
        _left_behind(engine, names["alive"], owners["alive"]),
        _left_behind(engine, names["elsewhere"], owners["elsewhere"]),
        _left_behind(engine, names["unsaid"], owners["unsaid"]),
    ):
        reap()  # another process may do the same just now
        assert _is_gone(names["dead"]) and _is_gone(names["again"])
        assert {what for what, name in names.items() if is_there(name)} == {"alive", "elsewhere", "unsaid"}


def test_an_owner_is_read_back_from_its_labels() -> None:
    me = this_process()
    assert read_labels(me.labels) == me and not me.dead
    assert read_labels({}) is None and read_labels({**me.labels, "manyturn.pid": "x"}) is None


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(["true"])
    mine = this_process()._replace(pid=child.pid, started=owner.this_process().started)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert mine.dead
    child.wait()


@pytest.mark.parametrize("field", ["host", "pid", "started"])
def test_labels_that_lack_something_name_nobody(field: str) -> None:
    labels = this_process().labels
    del labels[f"manyturn.{field}"]
    assert read_labels(labels) is None
