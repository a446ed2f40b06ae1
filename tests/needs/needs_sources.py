"""The fixture ``sources``: files of libraries that pip downloads, once for all processes of a session."""

import fcntl
from collections.abc import Callable, Mapping

import pytest
from needs import absent

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.software.source.libraries import LIBRARIES, library
from manyturn.envs.software.source.library_sources import cache_folder, download, missing, tree


@pytest.fixture(scope="session")
def sources() -> Callable[[str], Mapping[str, bytes]]:
    """Gives the files of a library's release; needs the package index, unless the library is installed."""

    def files(name: str) -> Mapping[str, bytes]:
        if missing([library(name)]):
            _download()
        return tree(library(name))

    return files


def _download() -> None:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # One that waited here finds what another has fetched, or that nothing can be.
        failed = folder / "failed"
        if not failed.exists():
            try:
                download(missing(LIBRARIES.values()))
            except NeedsSetup as reason:
                failed.write_text(str(reason))
        if failed.exists():
            absent("SOURCES", f"no sources of libraries: {failed.read_text()}")
