"""The script that starts an engine must not export one that somebody else has put in its place."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[3] / ".ci" / "engine"


@pytest.fixture
def started(tmp_path):
    """Runs the script where whatever is named seems to be an engine that answers."""
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text('#!/bin/sh\n[ "$2" != unix:///var/run/docker.sock ]\n')
    docker.chmod(0o755)
    environment = {"PATH": f"{docker.parent}:{os.environ['PATH']}"}

    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [str(ENGINE), "start", str(folder)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_an_engine_in_a_folder_of_ones_own_is_exported_whatever_the_folder_is_called(started, tmp_path):
    folder = tmp_path / "an engine; touch $HOME"
    folder.mkdir(mode=0o700)
    done = started(folder)
    assert done.returncode == 0, done.stderr
    export, value = shlex.split(done.stdout)
    assert (export, value) == ("export", f"DOCKER_HOST=unix://{folder}/s.sock")


@pytest.mark.parametrize("how", ["others can write", "link", "another owner"])
def test_an_engine_that_another_user_may_have_put_there_is_refused(how, started, tmp_path):
    folder = tmp_path / "engine"
    if how == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir(mode=0o700)
        if how == "others can write":
            folder.chmod(0o777)
        elif os.getuid():
            pytest.skip("only root can give a folder to another user")
        else:
            os.chown(folder, 65533, 65533)
    done = started(folder)
    assert done.returncode == 1 and done.stdout == ""
    assert "belongs to somebody else, or others can write to it" in done.stderr


def test_an_engine_that_is_installed_does_not_start_with_the_machine(tmp_path):
    """Debian's package would have one start by itself, with a bridge and a packet filter."""
    tools, log = tmp_path / "bin", tmp_path / "log"
    tools.mkdir()
    for name in ("bash", "cat", "env", "find", "grep", "mkdir", "seq", "setsid", "sleep", "tail", "timeout"):
        (tools / name).symlink_to(shutil.which(name))
    for name in ("apt-get", "systemctl", "mmdebstrap", "iptables", "apt-cache"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {log}\n')
    (tools / "docker").write_text("#!/bin/sh\nexit 1\n")
    (tools / "id").write_text("#!/bin/sh\necho 0\n")
    for file in tools.iterdir():
        if not file.is_symlink():
            file.chmod(0o755)
    command = [str(ENGINE), "start", str(tmp_path / "engine")]
    done = subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "dockerd did not start" in done.stderr
    said = log.read_text()
    assert "install" in said and "docker.io" in said
    assert "systemctl disable docker.service docker.socket containerd.service" in said
    assert "no engine starts with this machine" in done.stderr
