"""Whoever dies, and however a process hid, nothing of a command may be left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from manyturn.envs.hosting import keeper

PYTHON = [sys.executable, "-I", "-S"]
FLEE = "setsid sh -c 'setsid sleep 3600 & echo $! > {0}.tmp; mv {0}.tmp {0}; sleep 3600' & "


def kept(command: str, parent: int = os.getpid()) -> list[str]:
    return [*PYTHON, keeper.__file__, str(parent), "/bin/sh", "-c", command]


def fled(file: Path) -> psutil.Process:
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return psutil.Process(int(file.read_text()))


@pytest.mark.parametrize(("command", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 139)])
def test_the_status_is_the_commands(command, status):
    assert subprocess.run(kept(command), check=False).returncode == status


def test_what_a_command_left_behind_is_told_before_it_is_killed():
    read, write = os.pipe()
    words = [*PYTHON, keeper.__file__, "--left", str(write), str(os.getpid()), "/bin/sh", "-c"]
    subprocess.run(
        [*words, "setsid sleep 3601 & sleep 0.1 & setsid sleep 3602 & exit 3"], pass_fds=[write], check=False
    )
    os.close(write)
    with os.fdopen(read, "rb") as told:
        assert sorted(told.read().split(b"\0")) == [b"", b"sleep 3601", b"sleep 3602"]
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] in (["sleep", "3601"], ["sleep", "3602"])
    ]


def test_messages_pass_and_end_with_the_command():
    done = subprocess.run(kept("cat; echo end"), input=b"line\n", capture_output=True, check=True)
    assert done.stdout == b"line\nend\n"


def test_a_process_that_fled_ends_when_the_command_does(tmp_path):
    file = tmp_path / "fled"
    with subprocess.Popen(kept(FLEE.format(file) + f"while [ ! -e {file} ]; do :; done; read x"), stdin=-1) as running:
        process = fled(file)
        assert process.is_running() and process.pid != process.ppid()
        running.communicate(b"\n")
    assert not process.is_running()


def test_a_command_that_ignores_signals_and_has_stopped_is_killed_with_all_below_it(tmp_path):
    file = tmp_path / "fled"
    with subprocess.Popen(kept("trap '' TERM INT HUP; " + FLEE.format(file) + "kill -STOP $$")) as running:
        process = fled(file)
        running.terminate()
        assert running.wait(60) == 128 + signal.SIGKILL
    assert not process.is_running()


def test_a_keeper_notices_that_its_parent_is_dead(tmp_path):
    file = tmp_path / "fled"
    script = tmp_path / "parent.py"
    command = kept(FLEE.format(file) + "read x", parent=0)
    script.write_text(
        "import os, subprocess\n"
        f"command = {command!r}\n"
        f"command[{command.index('0')}] = str(os.getpid())\n"
        "subprocess.Popen(command, stdin=subprocess.PIPE).wait()\n"
    )
    with subprocess.Popen([*PYTHON, script]) as parent:
        process = fled(file)
        parent.kill()
    assert not psutil.wait_procs([process], timeout=60)[1]


def test_the_command_dies_with_its_keeper():
    with subprocess.Popen(kept("exec sleep 3600"), stdout=subprocess.PIPE) as running:
        while not (children := psutil.Process(running.pid).children()):
            time.sleep(0.01)
        running.kill()
    assert not psutil.wait_procs(children, timeout=60)[1]
