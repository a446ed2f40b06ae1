"""Files of the pinned releases, read from their archives: verified by hash, nothing unpacked, nothing run."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files as installed_files
from importlib.resources.abc import Traversable
from io import BytesIO
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from manyturn.envs.contract.atomic_files import cache_of
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.software.source.libraries import PYTEST_INI, Library, pytest_ini

MEND = 'run "manyturn data software" once'
_LARGEST = 50_000_000  # bytes of a release, unpacked
_LARGEST_ARCHIVE = 50_000_000
_PIP_SECONDS = 1800.0


class WrongRelease(NeedsSetup):
    """Files are there, but not those of the pinned release."""


def cache_folder() -> Path:
    """Folder of sdists: ``$MANYTURN_CACHE/software``, or ``~/.cache/manyturn/software``."""
    return cache_of("software")


@cache
def tree(library: Library) -> Mapping[str, bytes]:
    """Files of a workspace with the library as it was released: path -> content.

    Raises NeedsSetup where the release is missing, WrongRelease where it is another one.
    """
    files = _released(library) if library.archive else _installed(library)
    return MappingProxyType(dict(sorted(files.items())) | {PYTEST_INI: pytest_ini()})


def fingerprint(files: Mapping[str, bytes]) -> str:
    """SHA-256 of paths and contents."""
    total = hashlib.sha256()
    for path, content in sorted(files.items()):
        total.update(b"%s\0%s" % (path.encode(), hashlib.sha256(content).digest()))
    return total.hexdigest()


def sha256(content: bytes) -> str:
    """Hash of a file's content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def missing(libraries: Iterable[Library]) -> list[Library]:
    """Libraries whose sdist is not in the cache, or is another file there."""
    return [library for library in libraries if library.archive and not _is_pinned(library, _place(library))]


def take(libraries: Iterable[Library], folder: Path) -> None:
    """Copy sdists from a folder into the cache. Raises NeedsSetup for one that is missing, WrongRelease."""
    for library in libraries:
        file = folder / library.archive
        if not file.is_file():
            mend = f"pip download --no-deps --no-binary {library.name} {library.pin}"
            raise NeedsSetup(f"{folder} lacks {library.archive}: {mend}")
        if not _is_pinned(library, file):
            raise WrongRelease(f"{file} is not the pinned release: its SHA-256 is not {library.sha256}")
        place = _place(library)
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(f".{place.name}.{os.getpid()}")
        shutil.copyfile(file, aside)
        aside.replace(place)


def download(libraries: Iterable[Library]) -> None:
    """Have pip download sdists, from the index that it is configured for, into the cache.

    pip refuses a file whose hash is not the pinned one before it opens it. It then asks the release's own build
    system for metadata, as in any installation from source; ``take`` does without. Raises NeedsSetup.
    """
    missing = list(libraries)
    with tempfile.TemporaryDirectory() as scratch:
        pins = Path(scratch) / "pins.txt"
        pins.write_text("".join(f"{one.pin} --hash=sha256:{one.sha256}\n" for one in missing), encoding="utf-8")
        # Not :all:, which pip hands on to the build systems, so that it builds those from source as well.
        names = ",".join(one.name for one in missing)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", names]
        try:
            pip += ["--dest", scratch, "-r", str(pins)]
            done = subprocess.run(pip, capture_output=True, text=True, timeout=_PIP_SECONDS)
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done.returncode else ""
        except subprocess.TimeoutExpired:
            why = f"it took more than {_PIP_SECONDS:g} s"
        if why:
            raise NeedsSetup(
                f"pip cannot download {', '.join(one.pin for one in missing)}: {why}; get the sdists elsewhere and run "
                '"manyturn data software FOLDER"'
            )
        take(missing, Path(scratch))


def _place(library: Library) -> Path:
    return cache_folder() / library.archive


def _is_pinned(library: Library, file: Path) -> bool:
    return file.is_file() and sha256(_head(file)) == library.sha256


def _head(file: Path) -> bytes:
    """Content of a file; of one that is too large for a release only as much as shows that."""
    with file.open("rb") as stream:
        return stream.read(_LARGEST_ARCHIVE + 1)


def _released(library: Library) -> dict[str, bytes]:
    file = _place(library)
    if not file.is_file():
        raise NeedsSetup(f"the source of {library.pin} is missing: {MEND}")
    content = _head(file)
    if sha256(content) != library.sha256:
        raise WrongRelease(f"{file} is not the pinned release: remove it and {MEND}")
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        return dict(_members(library, archive))


def _members(library: Library, archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    total = 0
    for member in archive:
        path = str(PurePosixPath(*PurePosixPath(member.name).parts[1:])).removeprefix("src/")
        if not member.isfile() or ".." in path.split("/") or not library.holds(path):
            continue
        total += member.size
        if total > _LARGEST:
            raise WrongRelease(f"{library.archive} holds more than {_LARGEST} bytes")
        stream = archive.extractfile(member)
        assert stream is not None
        yield path, stream.read()


def _installed(library: Library) -> dict[str, bytes]:
    try:
        version = distribution(library.name).version
    except PackageNotFoundError:
        version = "none"
    mend = f"pip install {library.pin}"
    if version != library.version:
        raise WrongRelease(f"the tasks are of {library.pin}, but {version} is installed: {mend}")
    files = {path: content for path, content in _walk(installed_files(library.name), library.name, library)}
    if fingerprint(files) != library.sha256:
        raise WrongRelease(f"the installed {library.pin} is not as it was released: {mend} --force-reinstall")
    return files


def _walk(folder: Traversable, at: str, library: Library) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        path = f"{at}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _walk(entry, path, library)
        elif library.holds(path):
            yield path, entry.read_bytes()
