"""Commands about containers say in one line what is wrong, and end with the exit code that goes with it."""

import os
import subprocess
import sys

import pytest

NOWHERE = "unix:///nowhere/engine.sock"
COMMANDS = (("images", "list"), ("images", "build"), ("containers", "check"), ("containers", "reap"))


def manyturn(*words: str, host: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "manyturn", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DOCKER_HOST": host, "COLUMNS": "200"},
    )


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_engine_is_one_line_and_exit_code_2(words: tuple[str, ...]) -> None:
    found = manyturn(*words, host=NOWHERE)
    assert found.returncode == 2
    [line] = found.stderr.splitlines()
    assert line.startswith("manyturn: no container engine answers") and "DOCKER_HOST" in line


def test_help_lists_them() -> None:
    found = manyturn("--help", host=NOWHERE)
    assert found.returncode == 0 and "images" in found.stdout and "containers" in found.stdout


@pytest.fixture
def host(engine: str) -> str:
    """Where the engine answers."""
    return os.environ.get("DOCKER_HOST", "")


def test_check_tells_what_is_enforced(host: str) -> None:
    found = manyturn("containers", "check", host=host)
    assert found.returncode == 0, found.stderr
    for word in ("enforced", "memory yes", "processes yes", "seccomp", "sandboxes start from manyturn-python:1"):
        assert word in found.stdout


def test_list_names_the_image(host: str) -> None:
    found = manyturn("images", "list", host=host)
    assert found.returncode == 0 and "manyturn-python:1" in found.stdout


def test_reap_removes_what_a_dead_process_left_and_nothing_else(host: str) -> None:
    from manyturn.containers.engine import owner
    from manyturn.containers.engine.container_engine import LABEL, client, remove
    from manyturn.containers.engine.images import NAME

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ours = owner.this_process()
    theirs = ours._replace(pid=ended.pid)
    ended.wait()
    names = {}
    for who in (ours, theirs):
        labels = {LABEL: "1", **who.labels}
        names[who] = f"manyturn-test-{os.getpid()}-{who.pid}"
        client().create_container(NAME, ["true"], name=names[who], labels=labels)
    try:
        found = manyturn("containers", "reap", host=host)
        assert found.returncode == 0, found.stderr
        # Whoever starts a pool meanwhile reaps too, so that the command may come second.
        assert "removed" in found.stdout and names[ours] not in found.stdout
        left = {name for one in client().containers(all=True) for name in one["Names"]}
        assert f"/{names[ours]}" in left and f"/{names[theirs]}" not in left
    finally:
        for name in names.values():
            remove(name)
