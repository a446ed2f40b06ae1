"""A run of seconds, the wheel, and a browser."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DOORS = Path(__file__).parents[1] / "trainers" / "doors.py"


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory) -> Path:
    """The folder of a run that has learnt from a few of Doors' training tasks; each turn costs 0.25."""
    from manyturn.trainers.recipe.config import configure
    from manyturn.trainers.run.loop.loop import train

    folder = tmp_path_factory.mktemp("tiny")
    (folder / "doors.py").write_text(DOORS.read_text())
    env = {"id": f"{folder}/doors.py:Doors", "wrappers": [{"name": "turn_cost", "cost": 0.25}]}
    sizes = {
        "model": {"width": 16, "layers": 1, "heads": 2},
        "agent": {"max_context": 256},
        "sampling": {"max_tokens": 8},
        "warmup": {"episodes": 0},
        "rollout": {"tasks": 16, "group": 2},
        "evaluation": {"limit": 2},
        "steps": 1,
        "device": "cpu",
    }
    asyncio.run(train(configure({}, {"env": env}, sizes), folder / "run"))
    return folder / "run"


class Wheel(NamedTuple):
    """The project's wheel, and the files that git tracks."""

    file: Path
    tracked: list[Path]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Wheel:
    """The wheel of the tracked files alone, as an index would get it."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of files to compare with")
    files = [path for path in map(Path, listed.stdout.splitlines()) if (ROOT / path).exists()]
    folder = tmp_path_factory.mktemp("wheel")
    for path in files:
        target = folder / "tree" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_symlink():
            target.symlink_to(os.readlink(ROOT / path))
        else:
            target.write_bytes((ROOT / path).read_bytes())
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", folder, folder / "tree"], check=True, capture_output=True)
    [file] = folder.glob("*.whl")
    return Wheel(file, files)


@pytest.fixture
def bare_model(tiny_run, tmp_path) -> Path:
    """A model's folder that no run is known of."""
    return shutil.copytree(tiny_run / "checkpoints" / "step_000001" / "model", tmp_path / "copied")


@pytest.fixture(scope="module")
def browser(chromium) -> Iterator[Any]:
    """Chromium through Playwright, for one module: its driver holds a running event loop in this thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium)
        yield browser
        browser.close()
