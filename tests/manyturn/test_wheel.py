"""What is in the wheel, and what it says of itself."""

import email
import re
import sys
import zipfile
from pathlib import Path

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
