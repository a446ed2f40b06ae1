import io
import tarfile
from dataclasses import replace

import pytest
from tiny_library import ARCHIVE, CODE, FILES, TESTS, TINY, packed

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.software.source import library_sources
from manyturn.envs.software.source.libraries import PYTEST_INI, library
from manyturn.envs.software.source.library_sources import WrongRelease, sha256, tree


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "cache"))
    tree.cache_clear()
    yield library_sources.cache_folder()
    tree.cache_clear()


def put(cache, content: bytes) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    (cache / TINY.archive).write_bytes(content)


def test_a_workspace_has_code_tests_and_licence_but_no_build_files(cache):
    put(cache, ARCHIVE)
    files = tree(TINY)
    assert dict(files) == {
        "tiny.py": CODE,
        "tests/test_tiny.py": TESTS,
        "LICENSE": FILES["LICENSE"],
        PYTEST_INI: files[PYTEST_INI],
    }
    with pytest.raises(TypeError):
        files["tiny.py"] = b""


def test_a_missing_release_names_the_command_that_gets_it(cache):
    with pytest.raises(NeedsSetup, match=r'tiny==1.0 is missing: run "manyturn data software" once'):
        tree(TINY)
    assert library_sources.missing([TINY, library("networkx")]) == [TINY]


def test_another_file_than_the_pinned_one_is_not_opened(cache, tmp_path):
    put(cache, b"not even an archive")
    with pytest.raises(WrongRelease, match="not the pinned release"):
        tree(TINY)
    (tmp_path / TINY.archive).write_bytes(b"x")
    with pytest.raises(WrongRelease, match=TINY.sha256):
        library_sources.take([TINY], tmp_path)


def test_releases_are_taken_from_a_folder(cache, tmp_path):
    with pytest.raises(NeedsSetup, match=r"pip download .* tiny==1.0"):
        library_sources.take([TINY], tmp_path)
    (tmp_path / TINY.archive).write_bytes(ARCHIVE)
    library_sources.take([TINY], tmp_path)
    assert library_sources.missing([TINY]) == []
    assert [file.name for file in cache.iterdir()] == [TINY.archive]


def test_links_and_paths_out_of_an_archive_are_left_out(cache):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind in (("tiny-1.0/tests/link.py", tarfile.SYMTYPE), ("tiny-1.0/tests/hard.py", tarfile.LNKTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        for name in ("tiny-1.0/tests/../../../x.py", "tiny-1.0/src/tiny.py"):
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"1"))
    put(cache, stream.getvalue())
    assert set(tree(replace(TINY, sha256=sha256(stream.getvalue())))) == {"tiny.py", PYTEST_INI}


def test_an_archive_that_unpacks_to_too_much_is_refused(cache, monkeypatch):
    monkeypatch.setattr(library_sources, "_LARGEST", 100)
    content = packed({"tests/data": b"0" * 101})
    put(cache, content)
    with pytest.raises(WrongRelease, match="more than 100 bytes"):
        tree(replace(TINY, sha256=sha256(content)))


def test_another_networkx_than_the_pinned_one_is_refused():
    pinned = library("networkx")
    with pytest.raises(
        WrongRelease, match=r"tasks are of networkx==2.0, but .* is installed: pip install networkx==2.0"
    ):
        tree(replace(pinned, version="2.0"))
    with pytest.raises(WrongRelease, match="not as it was released"):
        tree(replace(pinned, sha256="0" * 64))


def test_a_download_that_fails_is_one_line_with_what_else_can_be_done(cache, monkeypatch, tmp_path):
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(tmp_path)), ("PIP_CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(name, value)
    with pytest.raises(NeedsSetup, match=r"cannot download tiny==1.0: .*tiny.*manyturn data software FOLDER"):
        library_sources.download([TINY])
