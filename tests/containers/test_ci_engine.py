"""The script that starts an engine must not export one that somebody else has put in its place."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / ".ci" / "engine"


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
