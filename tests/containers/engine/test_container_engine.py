"""Without an engine there is one clear error, and one that goes away takes its sandboxes with it."""

import builtins
import contextlib
import os
import socket
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from running import is_there

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine, client
from manyturn.containers.sandbox import EngineUnavailable, SandboxLost

pytestmark = pytest.mark.versions


@pytest.mark.parametrize("address", ["unix:///nowhere/at/all.sock", "tcp://127.0.0.1:9"])
def test_no_engine_is_one_line_with_the_remedies(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(EngineUnavailable) as caught:
        DockerSandbox(ContainerEngine()).start()
    text = str(caught.value)
    assert "\n" not in text and address in text
    assert all(remedy in text for remedy in ("start Docker or Podman", "set DOCKER_HOST", ".ci/engine start"))


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **fields: Any) -> Any:
        if name == "docker":
            raise ImportError(name)
        return real(name, *rest, **fields)

    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EngineUnavailable, match=r"pip install 'manyturn\[docker\]'"):
        client()


class Relay:
    """A socket that leads to the engine until it is cut."""

    def __init__(self, path: str, target: str) -> None:
        self._target, self._open = target, list[socket.socket]()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        for end in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far = self._listener.accept()[0], socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


def test_an_engine_that_goes_away_in_the_middle_of_a_command(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        pytest.skip("the relay leads to a unix socket only")
    with TemporaryDirectory(prefix="mt") as folder:
        path = str(Path(folder, "s"))
        relay = Relay(path, host.removeprefix("unix://"))
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        sandbox = DockerSandbox(ContainerEngine(image=engine))
        sandbox.start()
        threading.Timer(0.3, relay.cut).start()
        with pytest.raises(SandboxLost, match="ended during run"):
            sandbox.run("sleep 60", seconds=60)
        with pytest.raises(EngineUnavailable):
            DockerSandbox(ContainerEngine(image=engine)).start()
    monkeypatch.setenv("DOCKER_HOST", host)
    with contextlib.suppress(Exception):
        client().wait(sandbox.name, condition="removed", timeout=20)
    assert not is_there(sandbox.name)
