"""A package that new-env writes does not install, or its environment has no name once it is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from manyturn.cli.new_env import new_package
from manyturn.envs.conformance.check_runner import check


def test_its_environment_keeps_the_contract_before_it_is_installed(command, tmp_path):
    written = command("new-env", "my_world", "--package", "--out", tmp_path)
    assert written.code == 0 and f"pip install -e {tmp_path}/my_world" in written.out, written.err
    assert check(f"{tmp_path}/my_world/my_world/world.py:MyWorld", samples=6).passed


def test_work_that_is_there_is_never_overwritten(tmp_path):
    (readme := tmp_path / "mine" / "README.md").parent.mkdir()
    readme.write_text("mine")
    with pytest.raises(ValueError, match="--out"):
        new_package("mine", tmp_path)
    assert [file.name for file in tmp_path.rglob("*")] == ["mine", "README.md"] and readme.read_text() == "mine"


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["text", "gymnasium"])
def test_installed_it_is_checked_played_and_exported_by_its_id(tmp_path, kind):
    new_package("my_world", tmp_path, kind)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", tmp_path / "site", tmp_path / "my_world"], check=True, cwd=tmp_path)
    paths = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])

    def python(*words: object) -> str:
        ended = subprocess.run(
            [sys.executable, "-m", *map(str, words)],
            env={**os.environ, "PYTHONPATH": paths},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    readme = Path(tmp_path, "my_world", "README.md").read_text()
    [named] = set(re.findall(r"manyturn check (\S+)", readme))
    assert " passed" in python("manyturn", "check", named) and named in python("manyturn", "envs")
    assert "1 passed" in python("pytest", "-q", "-p", "no:cacheprovider", "my_world/tests")
    [export] = re.findall(r"`manyturn (export .*?)`", readme)
    if kind == "text":
        python("manyturn", *export.split())
        assert (tmp_path / "exported" / "pyproject.toml").is_file()
