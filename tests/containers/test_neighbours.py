"""What one container takes that the kernel counts by user is not missing in another, nor for a user of the host."""

import os
import subprocess
import sys
import threading
import time

import pytest
from attacks import python
from running import sandbox, started

from manyturn.containers.docker import agent_user
from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.engine.preflight import examined

__all__ = ["sandbox", "started"]

_USE_UP = python(
    """
t, timers, watchers = ctypes.c_void_p(), 0, 0
while timers < 200000 and libc.timer_create(1, None, ctypes.byref(t)) == 0: timers += 1
while watchers < 2000 and libc.inotify_init() >= 0: watchers += 1
print(timers, watchers, flush=True)
time.sleep(60)
"""
)
_NEED = (
    "import ctypes, os; libc = ctypes.CDLL(None); t = ctypes.c_void_p()\n"
    "os.getuid() or os.setuid(1000)\n"
    "print(libc.timer_create(1, None, ctypes.byref(t)), libc.inotify_init() >= 0)"
)


@pytest.mark.deep
def test_timers_and_watches_that_one_command_takes_are_there_for_others(engine: str, sandbox: DockerSandbox) -> None:
    other, taken = DockerSandbox(ContainerEngine(image=engine)), []
    other.start()
    thread = threading.Thread(target=lambda: taken.append(sandbox.run(_USE_UP, seconds=4.0)))
    thread.start()
    try:
        time.sleep(2.0)
        assert other.run(f"python3 -c '{_NEED}'").output == "0 True\n"
        if os.getuid() == 0:  # the user that most machines have first
            usual = [sys.executable, "-I", "-c", _NEED]
            assert subprocess.run(usual, capture_output=True, text=True, check=True).stdout == "0 True\n"
    finally:
        thread.join()
        other.stop()
    timers, watchers = map(int, taken[0].output.split())
    assert 100 < timers <= 1024 and watchers >= 100, "there is a limit, and it was reached"


def test_users_lie_beyond_those_of_the_host(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined()._replace(security=("seccomp",))
    monkeypatch.setattr(agent_user, "_own_users", lambda: 4_294_967_295)
    assert all(65_536 <= agent_user.drawn(found) < 524_288 for _ in range(100))
    for mapped in (found._replace(security=("seccomp", "rootless")), found._replace(security=("seccomp", "userns"))):
        assert all(agent_user.drawn(mapped) < 65_536 for _ in range(100))
    monkeypatch.setattr(agent_user, "_own_users", lambda: 65_536)
    assert all(agent_user.drawn(found) < 65_536 for _ in range(100))
