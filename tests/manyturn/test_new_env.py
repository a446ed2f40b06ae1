"""The file that a newcomer starts from works before the first edit, and never replaces work of theirs."""

import json
import shlex
import subprocess
import sys

import pytest

from manyturn.api.training import configured
from manyturn.cli.new_env import KINDS, new_env
from manyturn.envs.conformance.check_runner import check
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.terminal.overrides import parse_overrides


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stranger") / "not there yet"


@pytest.fixture(scope="module")
def commands(folder):
    return new_env("animal_row", folder)


def test_the_environment_keeps_the_contract(folder, commands):
    report = check(f"{folder}/animal_row.py:AnimalRow")
    assert report.passed, report
    assert len((folder / "animal_row.py").read_text().splitlines()) <= 30, "thirty lines are promised"


def test_its_own_test_passes_from_another_folder(folder, commands, tmp_path):
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "test_animal_row.py")]
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0 and "1 passed" in found.stdout, found.stdout + found.stderr


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
def test_environments_of_other_kinds_keep_the_contract(command, tmp_path, kind):
    written = command("new-env", "my_world", "--kind", kind, "--out", tmp_path)
    assert written.code == 0, written.err
    report = check(f"{tmp_path}/my_world.py:MyWorld", samples=6)
    assert report.passed and report["expert"].status == report["random"].status == "passed", report
    assert f"{tmp_path}/my_world.py:MyWorld" in (text := written.out) and "manyturn train" in text


def test_a_kind_that_does_not_exist_is_refused(command, tmp_path):
    refused = command("new-env", "my_world", "--kind", "tool", "--out", tmp_path / "new")
    assert refused.code == 2 and "'tools'" in refused.err and not (tmp_path / "new").exists()


def test_a_class_of_the_file_is_not_replaced_by_the_environment(tmp_path):
    with pytest.raises(ValueError, match="toolset_world"):
        new_env("toolset", tmp_path, "tools")
    assert not list(tmp_path.iterdir())


def test_first_held_out_tasks_are_not_alike(folder, commands):
    """Panels take the first tasks of a split; in the order of the alphabet they would all begin with the ant."""
    handle = EnvHandle(f"{folder}/animal_row.py:AnimalRow")
    rows = [handle.tasks("test")[i].params["row"] for i in range(40)]
    assert len({row[0] for row in rows}) == 7 and len(set(rows)) == 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_short_training_improves_it(command, tmp_path, kind):
    """New users judge by the first run: well above chance after the first updates of the warm-up."""
    pytest.importorskip("torch")
    new_env("my_world", tmp_path, kind)
    options = ["--out", tmp_path / "run", "--steps", "0", "--warmup.max_updates", "150", "--evaluation.limit", "64"]
    found = command("train", f"{tmp_path}/my_world.py:MyWorld", *options)
    assert found.code == 0, found.err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["after"]["success"] > summary["random"]["success"] + 0.1, summary


@pytest.mark.parametrize(("name", "cls"), [("row", "Row"), ("my_2nd_world", "My2ndWorld"), ("a__b_", "AB")])
def test_the_class_is_named_after_the_file(tmp_path, name, cls):
    assert new_env(name, tmp_path)[0].endswith(f"/{name}.py:{cls}")
    handle = EnvHandle(f"{tmp_path}/{name}.py:{cls}")
    assert type(handle.env.unwrapped).__name__ == cls


def test_work_that_is_there_is_never_overwritten(tmp_path):
    for kept in ("mine.py", "test_mine.py"):
        (tmp_path / kept).write_text("mine")
        with pytest.raises(ValueError, match="is there already"):
            new_env("mine", tmp_path)
        assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {kept: "mine"}
        (tmp_path / kept).unlink()


def test_a_dangling_link_is_not_written_through(tmp_path):
    (tmp_path / "mine.py").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is there already"):
        new_env("mine", tmp_path)


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("my-world", "my_world"),
        ("MyWorld", "my_world"),
        ("2048", "my_world"),
        ("", "my_world"),
        ("../up", "up"),
        ("größe", "small letters"),
        ("class", "class_world"),
        ("random", "random_world"),
        ("manyturn", "manyturn_world"),
        ("gymnasium", "gymnasium_world"),
    ],
)
def test_a_name_that_would_break_imports_is_refused(tmp_path, name, mend):
    with pytest.raises(ValueError, match=mend):
        new_env(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_commands_can_be_pasted(tmp_path):
    *words, own = new_env("row", tmp_path / "a folder")
    assert [word.split()[1] for word in words] == ["play", "check", "train"]
    assert words[0].endswith("a folder/row.py:Row'")
    train = shlex.split(words[2], comments=True)
    assert configured((), parse_overrides(train[3:]), train[2]).steps == 10  # a first try is short
    install, run = (shlex.split(command) for command in own.split(" && "))
    assert install == ["pip", "install", "pytest"] and run[:3] == ["python", "-m", "pytest"]
    found = subprocess.run([sys.executable, *run[1:], "-p", "no:cacheprovider"], cwd=tmp_path, check=False)
    assert found.returncode == 0
