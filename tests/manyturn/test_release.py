"""A release whose parts disagree, that an index would refuse, or an image that lacks what it is for."""

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest
from needs import absent  # pyright: ignore[reportAttributeAccessIssue]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    loader = SourceFileLoader("release", str(ROOT / ".ci" / "release"))
    spec = importlib.util.spec_from_loader("release", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = writes
    return module


def test_version_changelog_and_citation_agree(release):
    assert release.disagreements(ROOT) == []


PARTS = {
    "manyturn/__init__.py": '"""A gym."""\n\n__version__ = "0.1.0"\n',
    "CITATION.cff": "cff-version: 1.2.0\nversion: 0.1.0\n",
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n### Added\n\n- New.\n",
}


@pytest.mark.parametrize(
    "file, before, after, said",
    [
        ("CITATION.cff", "0.1.0", "0.0.9", "CITATION.cff is of version 0.0.9: write 0.1.0"),
        ("CITATION.cff", "\nversion", "\ncommit", "CITATION.cff is of version none"),
        ("CHANGELOG.md", "Unreleased", "0.0.9 - 2026-01-01", "begins with '0.0.9 - 2026-01-01'"),
        ("CHANGELOG.md", "Unreleased", "0.1.0", "name its first entry '0.1.0 - YYYY-MM-DD'"),
        ("CHANGELOG.md", "- New.", "## 0.0.9 - 2026-01-01\n\n- Old.", "says nothing of Unreleased"),
        ("manyturn/__init__.py", "0.1.0", "0.2.0", "write 0.2.0"),
    ],
)
def test_a_part_that_was_forgotten_is_named(release, tmp_path, file, before, after, said):
    (tmp_path / "manyturn").mkdir()
    for name, text in PARTS.items():
        (tmp_path / name).write_text(text)
    assert release.disagreements(tmp_path) == []
    (tmp_path / file).write_text(PARTS[file].replace(before, after))
    [wrong] = release.disagreements(tmp_path)
    assert said in wrong


@pytest.mark.slow
def test_the_wheel_runs_where_it_was_installed_without_an_index(release, wheel, tmp_path):
    try:
        assert release.journey(Path(sys.executable), Path(wheel.file), tmp_path) == []
    except subprocess.CalledProcessError as error:
        if "download" not in error.cmd:
            raise
        absent("SOURCES", "no package index")


@pytest.mark.slow
def test_the_image_runs_without_network_as_nobody(engine, wheel, tmp_path):
    """As docs/installation.md says, on the base that we make ourselves, which has the Python of Debian."""
    if sys.version_info[:2] != (3, 11) or shutil.which("docker") is None:
        pytest.skip("the base image has Python 3.11, and the command docker builds on it")
    (tmp_path / "dist").mkdir()
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--constraint"]
    download += [ROOT / "constraints.txt", "--dest", tmp_path / "dist" / "wheels", "pip", wheel.file]
    ended = subprocess.run(download, capture_output=True, text=True, check=False)
    if ended.returncode:
        absent("SOURCES", f"no package index: {ended.stderr.splitlines()[-1]}")
    name = f"manyturn-test:{os.getpid()}"
    arguments = ["--build-arg", f"BASE={engine}", "--build-arg", "EXTRAS=", "--tag", name]
    build = ["docker", "build", "--quiet", "--force-rm", "--network", "none", *arguments]
    subprocess.run([*build, "--file", ROOT / "Containerfile", tmp_path / "dist"], check=True, capture_output=True)
    run = ["docker", "run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--tmpfs", "/work:uid=10001"]
    try:
        told = subprocess.run(
            [*run, name, "evaluate", "expert", "--env", "manyturn/Maze-v0", "--limit", "4", "--out", "expert"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0 and "4 episodes" in told.stdout, told.stderr
        who = subprocess.run([*run, "--entrypoint", "id", name, "-u"], capture_output=True, text=True, check=True)
        assert who.stdout.strip() == "10001"
    finally:
        for end in (["rm", "--force", name], ["prune", "--force", "--filter", "label=manyturn.stage=installed"]):
            subprocess.run(["docker", "image", *end], check=True, capture_output=True)
