"""Hostile files in the place of a library's release: `manyturn data software FOLDER` refuses each and takes nothing."""

import gzip
import io
import os
import resource
import signal
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from numpy.random import Generator
from short_runs import ended, start
from tally import Tally

from manyturn.cli.app import main
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.software.source.libraries import LIBRARIES

SHORT, LONG = 13, 52
_BAD_INPUT = 2
_MEMORY, _SECONDS = 2**29, 20  # bytes above those of the process, and until the kernel ends it


def run(count: int, seed: int, folder: Path) -> Tally:
    rng, tally, kinds = generator("archives", seed), Tally(), list(HOSTILE)
    names = sorted(one.archive for one in LIBRARIES.values() if one.archive)
    for number in range(count):
        place, kind = folder / f"{number}", kinds[number % len(kinds)]
        place.mkdir()
        for name in names:
            HOSTILE[kind](place / name, rng)
        status = ended(start(lambda place=place: _take(place)), _SECONDS + 10)
        taken = [file.name for file in (place / "cache").rglob("*") if file.is_file()]
        why = [] if status == _BAD_INPUT and not taken else [f"{kind}: status {status}, taken {taken}"]
        tally += Tally(1, int(not why), orphans=len(taken), notes=why)
    return tally


def _take(place: Path) -> None:
    """Run the user's command silently, within limits that a release never needs."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.environ["MANYTURN_CACHE"] = str(place / "cache")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    signal.alarm(_SECONDS)
    sys.argv = ["manyturn", "data", "software", str(place)]
    main()


def _archive(kind: bytes, name: str = "x-1/x/__init__.py", content: bytes = b"", size: int | None = None) -> bytes:
    """An archive with one member."""
    stream, member = io.BytesIO(), tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
    member.size = len(content) if size is None else size
    stream.write(member.tobuf() + content + bytes(1024 - len(content) % 512))
    return gzip.compress(stream.getvalue())


def _of(content: Callable[[Generator], bytes]) -> Callable[[Path, Generator], object]:
    return lambda path, rng: path.write_bytes(content(rng))


def _hole(path: Path, rng: Generator) -> None:
    """A file of terabytes that takes no space."""
    path.touch()
    os.truncate(path, int(rng.integers(2**40, 2**43)))


_UP = tarfile.REGTYPE
HOSTILE: dict[str, Callable[[Path, Generator], object]] = {
    "a path upwards": _of(lambda rng: _archive(_UP, "../" * int(rng.integers(1, 9)) + "x.py", b"1")),
    "an absolute path": _of(lambda rng: _archive(_UP, "/etc/x.py", b"1")),
    "a symbolic link": _of(lambda rng: _archive(tarfile.SYMTYPE)),
    "a hard link": _of(lambda rng: _archive(tarfile.LNKTYPE)),
    "a device": _of(lambda rng: _archive(tarfile.CHRTYPE)),
    "a pipe": _of(lambda rng: _archive(tarfile.FIFOTYPE)),
    "a bomb": _of(lambda rng: _archive(_UP, content=bytes(int(rng.integers(10**8, 2 * 10**8))))),
    "a size that lies": _of(lambda rng: _archive(_UP, size=int(rng.integers(2**32)))),
    "random bytes": _of(lambda rng: rng.bytes(int(rng.integers(1, 10**5)))),
    "an endless device": lambda path, rng: path.symlink_to("/dev/zero"),
    "a pipe in its place": lambda path, rng: os.mkfifo(path),
    "a folder in its place": lambda path, rng: path.mkdir(),
    "a file of terabytes": _hole,
}
