"""Folders from elsewhere and disks without space: code that runs unasked, and errors that name no fix."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import manyturn as mt
from manyturn.terminal.overrides import parse_overrides
from manyturn.trainers.recipe.config import parse_config, read_toml, to_toml

CODE = """
from pathlib import Path
from manyturn.envs.classics.maze import Maze

Path(__file__).with_name("imported").touch()

class Own(Maze):
    pass
"""
SIZES = ("--model.width", 16, "--model.layers", 1, "--model.heads", 2, "--warmup.episodes", 0, "--steps", 1)
SMALL = ("--evaluation.limit", 2, "--rollout.tasks", 2, "--rollout.group", 2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A folder with a run in own.py, begun by this account."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "own.py").write_text(CODE)
    words = ("train", f"{folder}/own.py:Own", *SIZES, *SMALL, "--out", folder / "run")
    subprocess.run([sys.executable, "-m", "manyturn", *map(str, words)], check=True, capture_output=True)
    return folder


@pytest.fixture
def gift(runs, tmp_path, monkeypatch) -> Path:
    """The same run in the account of somebody else, who has not run its file."""
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "cache"))
    shutil.copytree(runs / "run", tmp_path / "run")
    (runs / "imported").unlink(missing_ok=True)
    return tmp_path / "run"


def test_a_run_of_this_account_asks_nothing(command, runs):
    assert command("train", "--resume", runs / "run", "--steps", 2).code == 0
    assert command("evaluate", runs / "run", "--limit", 2).code == 0


@pytest.mark.parametrize("forged", [None, "0" * 64, "\xff", ""])
def test_a_run_from_elsewhere_starts_no_file_before_it_is_named(command, runs, gift, forged):
    if forged is not None:
        (gift / "signature").write_bytes(forged.encode("latin-1"))
    resumed = command("train", "--resume", gift, "--steps", 2)
    evaluated = command("evaluate", gift, "--limit", 2)
    assert (resumed.code, evaluated.code) == (2, 2) and "--accept-code" in resumed.err
    assert f"--env {runs}/own.py:Own" in evaluated.err
    with pytest.raises(ValueError, match="--accept-code"):
        mt.resume(gift)
    assert not (runs / "imported").exists()


def test_a_run_from_elsewhere_goes_on_once_its_file_is_named(command, runs, gift):
    assert command("evaluate", gift, "--limit", 2, "--env", f"{runs}/own.py:Own").code == 0
    assert command("train", "--resume", gift, "--steps", 2, "--accept-code").code == 0
    assert command("train", "--resume", gift, "--steps", 3).code == 0, "it is this account's now"


def test_arguments_of_a_run_from_elsewhere_start_no_program(command, gift):
    evil, started = gift / "evil", gift / "started"
    evil.write_text(f"#!/bin/sh\ntouch {started}\n")
    evil.chmod(0o755)
    config = read_toml(gift / "config.toml")
    config["env"] |= {"id": "manyturn/AppWorld-v0", "args": {"python": str(evil), "root": str(gift)}}
    (gift / "config.toml").write_text(to_toml(parse_config(config)))
    for words in (("train", "--resume", gift, "--accept-config"), ("evaluate", gift)):
        refused = command(*words)
        assert refused.code == 2 and str(evil) in refused.err
    assert not started.exists()


@pytest.mark.parametrize("partner", ["{gift}/partner.py:reply", "openai:model"])
def test_partners_of_a_run_from_elsewhere_are_not_asked_before_they_are_named(command, gift, partner):
    (gift / "partner.py").write_text(f"open({str(gift / 'started')!r}, 'w')\ndef reply(observation, info): return ''\n")
    word, config = partner.format(gift=gift), read_toml(gift / "config.toml")
    options = {"sampling": {"temperature": 0.5}} if word.startswith("openai") else {}
    second = {"policy": word, **options}
    config |= {"env": {"id": "manyturn/Talk-SelfPlay-v0"}, "roles": {"first": "me", "second": second}}
    (gift / "config.toml").write_text(to_toml(parse_config(config)))
    resumed, evaluated = command("train", "--resume", gift, "--accept-config"), command("evaluate", gift)
    assert (resumed.code, evaluated.code) == (2, 2)
    suggested = shlex.split(evaluated.err.partition("add ")[2])[:2]
    assert "--accept-code" in resumed.err and parse_overrides(suggested) == {"roles": {"second": second}}
    assert not (gift / "started").exists()


@pytest.mark.parametrize("name", ["panel.json", "summary.json", "manifest.json"])
def test_an_evaluation_whose_files_are_no_text_is_bad_input(command, tmp_path, name):
    for folder in ("one", "two"):
        assert command("evaluate", "random", "--env", "manyturn/Maze-v0", "--limit", 2, "--out", tmp_path / folder)
    (tmp_path / "two" / name).write_bytes(b"\xff\xfe{}")
    words = [("report", tmp_path / "two"), ("compare", tmp_path / "one", tmp_path / "two")]
    codes = [command(*one).code for one in words]
    assert codes == [2, 0 if name == "manifest.json" else 2]


def test_an_evaluation_on_a_full_disk_names_the_command_that_continues_it(tmp_path):
    """In a mount of its own, first too small and then large enough."""
    (tmp_path / "disk").mkdir()
    command = f"{sys.executable} -m manyturn evaluate random --env manyturn/Maze-v0 --limit 200 --out disk/out"
    script = f"mount -t tmpfs -o size=64k none disk && {command}; echo $?; mount -o remount,size=9m disk; {command}"
    ended = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    if "Operation not permitted" in ended.stderr:
        pytest.skip("no mounts can be made here")
    assert ended.returncode == 0 and ended.stdout.splitlines()[0] == "4", ended.stderr
    [line] = [line for line in ended.stderr.splitlines() if "No space left" in line]
    assert "disk/out" in line and "the same command" in line
