"""A library of a few lines with tests, as a release in an archive: small enough to find all its tasks in a moment."""

import io
import tarfile

import pytest

from manyturn.envs.software.source.libraries import LIBRARIES, Library
from manyturn.envs.software.source.library_sources import cache_folder, sha256, tree

CODE = b'''"""Numbers."""


def largest(numbers, least=0):
    found = least  # never below
    for number in numbers:
        if number > found:
            found = number
    return found


def clipped(number, low, high):
    if number < low:
        return low
    return high if number > high else number


class Total:
    def __init__(self):
        self.value = 0

    def add(self, number):
        self.value += number
        return self

    def mean(self, count):
        return self.value / count
'''
TESTS = b"""import pytest

from tiny import Total, clipped, largest


@pytest.mark.parametrize("numbers", [[1, 2, 3], [3, 2, 1], [2, 3]])
def test_largest(numbers):
    assert largest(numbers) == 3


def test_least():
    assert largest([1], least=4) == 4


@pytest.mark.parametrize("number", range(5))
def test_within(number):
    assert clipped(number, 0, 4) == number


def test_low():
    assert clipped(-1, 0, 4) == 0


def test_high():
    assert clipped(9, 0, 4) == 4


def test_total():
    assert Total().add(2).add(3).value == 5


def test_mean():
    assert Total().add(2).add(4).mean(2) == 3
"""


def packed(files: dict[str, bytes]) -> bytes:
    """An sdist with these files, by name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"tiny-1.0/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


FILES = {"src/tiny.py": CODE, "tests/test_tiny.py": TESTS, "LICENSE": b"MIT\n", "setup.py": b"raise SystemExit\n"}
ARCHIVE = packed(FILES)
TINY = Library("tiny", "1.0", "MIT", sha256(ARCHIVE), ("tiny.py",), ("tests/",), archive="tiny-1.0.tar.gz")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The library, known by its name, with its release in the cache."""
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(LIBRARIES, TINY.name, TINY)
    place = cache_folder() / TINY.archive
    place.parent.mkdir(parents=True)
    place.write_bytes(ARCHIVE)
    tree.cache_clear()
    yield TINY
    tree.cache_clear()
