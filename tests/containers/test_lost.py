"""A sandbox that is gone is said to be, with the reason; it is never an answer and never waited for without end."""

import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import NOBODYS_MEMORY, is_there

from manyturn.containers.docker import docker_sandbox
from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.docker.stream import Stream
from manyturn.containers.engine.container_engine import ContainerEnd, ContainerEngine, client
from manyturn.containers.engine.preflight import examined
from manyturn.containers.inside import wire
from manyturn.containers.sandbox import SandboxLimits, SandboxLost, SandboxOverrun


@pytest.fixture
def fresh(engine: str) -> Iterator[DockerSandbox]:
    sandbox = DockerSandbox(ContainerEngine(image=engine, margin=1.0))
    sandbox.start()
    yield sandbox
    sandbox.stop()
    assert not is_there(sandbox.name)


@pytest.mark.deep
@pytest.mark.parametrize(("number", "reason"), [("SIGKILL", "exit status 137"), ("SIGABRT", "ended during run")])
def test_a_container_that_is_killed_in_the_middle_of_a_command(fresh: DockerSandbox, number: str, reason: str) -> None:
    threading.Timer(0.3, lambda: client().kill(fresh.name, number)).start()
    if number == "SIGABRT":  # which the first process of a container does not hear
        threading.Timer(0.6, lambda: client().remove_container(fresh.name, force=True)).start()
    with pytest.raises(SandboxLost, match=reason):
        fresh.run("sleep 60", seconds=60)
    for call in (fresh.ping, fresh.snapshot, lambda: fresh.run("true"), lambda: fresh.read("x")):
        with pytest.raises(SandboxLost, match="does not run"):
            call()
    fresh.stop()


def test_memory_that_runs_out_is_told_from_an_engine_that_ends_a_container(engine: str) -> None:
    """Where the kernel has no Landlock a command can have the tool server killed: that is its doing, and no fault."""
    if examined().podman:
        pytest.skip("Podman reports no memory that ran out")
    limits = SandboxLimits(memory_mb=64, workspace_mb=4, scratch_mb=4)
    sandbox = DockerSandbox(ContainerEngine(image=engine, limits=limits))
    sandbox.start()
    score = Path(f"/proc/{client().inspect_container(sandbox.name)['State']['Pid']}/oom_score_adj")
    if not score.exists():
        sandbox.stop()
        pytest.skip("the engine's processes cannot be looked at from here")
    score.write_text("1000")  # as large as a command's own
    with pytest.raises(SandboxOverrun, match="it ran out of memory"):
        sandbox.run(NOBODYS_MEMORY, seconds=20)
    assert not is_there(sandbox.name)


@pytest.mark.deep
def test_a_container_that_hangs_is_given_up_soon_after_the_deadline(fresh: DockerSandbox) -> None:
    client().pause(fresh.name)
    with pytest.raises(SandboxLost, match=r"no answer to run within 1\.5 s"):
        fresh.run("true", seconds=0.5)


def test_a_call_that_is_interrupted_ends_the_sandbox(fresh: DockerSandbox) -> None:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        fresh.run("sleep 60", seconds=60)
    with pytest.raises(SandboxLost):
        fresh.run("echo the answer to something else")


def test_callers_wait_for_each_other(fresh: DockerSandbox) -> None:
    told = dict[int, str]()

    def ask(number: int) -> None:
        told[number] = fresh.run(f"sleep 0.05; echo {number}").output

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == {number: f"{number}\n" for number in range(6)}


def _framed(data: bytes, kind: int = 1) -> bytes:
    return struct.pack(">BxxxI", kind, len(data)) + data


def _answered(reply: bytes, monkeypatch: pytest.MonkeyPatch) -> DockerSandbox:
    """A sandbox whose other end says this and closes."""
    monkeypatch.setattr(docker_sandbox, "remove", lambda name: None)
    monkeypatch.setattr(docker_sandbox, "ending", lambda name: ContainerEnd())
    near, far = socket.socketpair()
    sandbox = DockerSandbox(ContainerEngine())
    sandbox._stream = Stream(near)
    far.sendall(reply)
    far.shutdown(socket.SHUT_WR)
    threading.Timer(0.2, far.close).start()
    return sandbox


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"", "the container ended during ping"),
        (_framed(b"Traceback\n", kind=2), "it said: Traceback"),
        (_framed(b"hello, I am no server"), "garbled"),
        (_framed(wire.opening({"id": 1, "nonce": "forged"}, 0)), "garbled.*something else"),
        (_framed(wire.opening({"id": 1, "nonce": "forged"}, 1 << 29)), "garbled"),
        (_framed(wire.opening({"id": 1, "failed": "boom"}, 0)), "garbled"),
        (_framed(struct.pack(">4sII", b"mty1", 3, 0) + b"[]!"), "garbled"),
        (_framed(struct.pack(">4sII", b"mty1", 2, 0) + b"[]"), "garbled"),
        (_framed(wire.opening({"id": 1}, 100) + b"half"), "ended"),
        (struct.pack(">BxxxI", 1, 1 << 31), "ended"),
    ],
)
def test_what_is_no_answer_is_a_loss(reply: bytes, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SandboxLost, match=reason):
        _answered(reply, monkeypatch).ping()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_noise_is_a_loss(noise: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SandboxLost):
        _answered(noise, patch).ping()
