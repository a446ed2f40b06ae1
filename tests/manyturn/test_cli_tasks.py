"""The commands that make software tasks and get their sources."""

import io
import tarfile

import pytest

from manyturn.envs.software.source import libraries
from manyturn.envs.software.source.library_sources import cache_folder, sha256, tree


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with the sdist of the only library that there is."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("small-1.0/small.py")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"x=1\n"))
    known = libraries.Library(
        "small", "1.0", "MIT", sha256(stream.getvalue()), ("small.py",), (), archive="small.tar.gz"
    )
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "cache"))
    for name in list(libraries.LIBRARIES):
        monkeypatch.delitem(libraries.LIBRARIES, name)
    monkeypatch.setitem(libraries.LIBRARIES, "small", known)
    tree.cache_clear()
    (tmp_path / "sdists").mkdir()
    (tmp_path / "sdists" / known.archive).write_bytes(stream.getvalue())
    return tmp_path / "sdists"


def test_sources_are_taken_from_a_folder_and_then_known(command, small):
    said = "small==1.0: MIT, 2 files, 0 kB\n"
    assert command("data", "software", small) == (0, said, "")
    assert [file.name for file in cache_folder().iterdir()] == ["small.tar.gz"]
    assert command("data", "software") == (0, said, "")


def test_a_folder_that_lacks_a_source_says_how_to_get_it(command, small, tmp_path):
    ended = command("data", "software", tmp_path)
    assert ended.code == 2
    assert ended.err.endswith("lacks small.tar.gz: pip download --no-deps --no-binary small small==1.0\n")


def test_tasks_of_libraries_that_are_not_there_are_refused_before_a_search(command, small, tmp_path):
    out = tmp_path / "tasks.jsonl"
    ended = command("tasks", "software", "--libraries", "small,large", "--out", out)
    assert ended == (2, "", "manyturn: no library large: there are small\n")
    ended = command("tasks", "software", "--libraries", "small", "--out", out)
    assert ended == (2, "", 'manyturn: the sources of small are missing: run "manyturn data software" once\n')
    assert list(tmp_path.glob("tasks*")) == []
