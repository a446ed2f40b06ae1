"""What is in the wheel, and what it says of itself."""

import email
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("envs", "agents", "trainers", "containers")


def test_wheel_holds_what_git_lists(wheel):
    """An editable install hides files that a wheel forgets."""
    names = zipfile.ZipFile(wheel.file).namelist()
    packed = {n for n in names if ".dist-info/" not in n}
    licences = {n.rpartition("/licenses/")[2] for n in names if "/licenses/" in n}
    assert licences == {"LICENSE", "THIRD_PARTY_NOTICES.md"}
    expected = set()
    for path in wheel.tracked:
        if path.parts[0] in FOLDERS:
            expected.add(str(Path("manyturn", path)))
        elif path.parts[0] == "manyturn" and not (ROOT / path).is_symlink():
            expected.add(str(path))
        elif path.parts[:3] == ("benchmarks", "results", "suite") and path.suffix == ".json":
            expected.add(str(Path("manyturn", "suites", "results", *path.parts[3:])))  # floors and ceilings
    assert packed == expected


def test_an_index_shows_what_the_wheel_says_of_itself(wheel):
    """A relative link or picture leads nowhere there."""
    archive = zipfile.ZipFile(wheel.file)
    [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    told = email.message_from_string(archive.read(metadata).decode())
    links = re.findall(r"\]\(([^)]*)\)", str(told.get_payload()))
    assert "pip install" in str(told.get_payload()) and [link for link in links if "://" not in link] == []
    assert told["Author"] == "The manyturn developers" and told["Description-Content-Type"] == "text/markdown"
    assert f"Programming Language :: Python :: {sys.version_info[0]}.{sys.version_info[1]}" in told.get_all(
        "Classifier"
    )


SMALL = (
    "--model.width 16 --model.layers 1 --model.heads 2 --model.sample-tasks 4 --rollout.tasks 2 --rollout.group 4 "
    "--warmup.episodes 24 --warmup.max-updates 10 --warmup.until-success 0 --warmup.check-episodes 2 "
    "--evaluation.limit 2 --steps 1"
)
JOURNEY = (
    f"quickstart {SMALL}",
    "new-env my_world",
    "check my_world.py:MyWorld --samples 2",
    f"train my_world.py:MyWorld --out runs/mine {SMALL}",
    "evaluate runs/mine --limit 2 --out found",
)
DRIVER = """
import sys
import manyturn.envs
from manyturn.cli import app
assert manyturn.envs.__file__.startswith(sys.argv[1]), manyturn.envs.__file__
for line in sys.argv[2:]:
    sys.argv = ["manyturn", *line.split()]
    try:
        app.main()
    except SystemExit as end:
        assert not end.code, line
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_trains_with_no_checkout(wheel, tmp_path):
    """The packages that it needs are this environment's, manyturn is the wheel in a folder of its own. One process runs
    all commands, which saves the import of torch."""
    there, folder = tmp_path / "there", tmp_path / "folder"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", there, wheel.file]
    subprocess.run(pip, check=True, capture_output=True)
    folder.mkdir()
    command = [sys.executable, "-P", "-c", DRIVER, str(there), *JOURNEY]
    variables = {**os.environ, "PYTHONPATH": str(there)}
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for file in ("runs/quickstart/summary.json", "runs/mine/report.html", "found/summary.json"):
        assert (folder / file).is_file(), ended.stdout
