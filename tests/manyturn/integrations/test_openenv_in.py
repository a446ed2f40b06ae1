"""Environments behind OpenEnv's own server, played here: other rewards than it gives, its errors as results."""

import contextlib
import math
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gymnasium.error import ResetNeeded
from needs_host import host  # pyright: ignore[reportMissingImports]

from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle, PlaceLost

WORLDS = Path(__file__).with_name("openenv_worlds.py")


@pytest.fixture(autouse=True)
def _openenv() -> None:
    host("openenv")


@contextlib.contextmanager
def server(world: str, sessions: int = 32) -> Iterator[str]:
    """OpenEnv's server of a world, as an environment's name."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running = subprocess.Popen([sys.executable, WORLDS, world, str(port), str(sessions)])
    try:
        while running.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield f"openenv:http://127.0.0.1:{port}"
    finally:
        running.kill()
        running.wait()


@contextlib.contextmanager
def played(name: str) -> Iterator[EnvHandle]:
    here = EnvHandle(name)
    try:
        yield here
    finally:
        here.close()


def test_the_command_line_checks_and_evaluates_its_environment(command, tmp_path):
    with server("guessing") as name:
        found = command("check", name, "--samples", 3)
        assert found.code == 0 and "no tasks (seeds stand for them, in one split)" in found.out, found.out + found.err
        evaluate = ("evaluate", "random", "--env", name, "--split", "train", "--limit", 12, "--out", tmp_path)
        found = command(*evaluate)
        assert found.code == 0 and "errors 0, retried 0" in " ".join(found.out.split()), found.out + found.err
        assert command("evaluate", "random", "--env", name).code == 2  # no split test is made up


def test_its_turns_are_what_it_says_they_are():
    with server("guessing") as name, played(name) as env:
        task = env.tasks("train")[7]
        assert (env.reset(task, 1).observation, env.has_expert) == ("Guess.", False)
        wrong, right = env.step("3"), env.step("7")
        assert (wrong.observation, wrong.reward, wrong.ended) == ("No.", 0.0, False)
        assert (right.reward, right.terminated, right.truncated, right.success) == (1.0, True, False, True)
        env.reset(task, 1)
        last = [env.step("3") for _ in range(5)][-1]
        assert (last.reward, last.terminated, last.truncated, last.success) == (0.0, False, True, False)
        assert not math.isnan(last.reward)


def test_its_tasks_are_begun_by_split_and_index(command, tmp_path):
    with server("listed") as name, played(name) as env:
        assert env.splits == ("train", "test") and len(env.tasks("test")) == 3
        for task in (*env.tasks("test"), env.tasks("train")[130]):
            env.reset(task, 1)
            assert env.step(str(task.params["secret"])).success is True
        found = command("evaluate", "random", "--env", name, "--limit", 3, "--out", tmp_path)
        assert found.code == 0 and "errors 0" in " ".join(found.out.split()), found.out + found.err


def test_several_fields_are_read_as_json():
    with server("spelled") as name, played(name) as env:
        assert env.reset(env.tasks("train")[1], 1).observation == '{"hint": "Guess.", "tries": 0}'
        assert env.step("3").observation == '{"hint": "No.", "tries": 1}'


def test_its_errors_are_none_of_its_rewards():
    with server("guessing", sessions=1) as name, played(name) as env, played(name) as other:
        env.reset(env.tasks("train")[0], 1)
        with pytest.raises(PlaceLost, match="CAPACITY_REACHED"):
            other.reset(env.tasks("train")[0], 1)
        with pytest.raises(EnvError, match="EXECUTION_ERROR: broken on purpose") as caught:
            env.step("raise")
        assert not isinstance(caught.value, PlaceLost)
        with pytest.raises(ResetNeeded):
            env.step("1")
