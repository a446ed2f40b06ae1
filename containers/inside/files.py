"""The files of the workspace, reached with the agent's rights only.

No process of the agent's runs meanwhile, so nothing moves. That every part of a path is opened without following links
is the second lock on the same door.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from manyturn.containers.inside import privilege_drop
from manyturn.containers.inside.archive import FILE, FOLDER, LINK, ArchivedPath, BadArchive, order, pack, unpack

LEFT_OUT = frozenset({"__pycache__", ".pytest_cache"})
_KINDS = {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: LINK}
_LONGEST = 4000
_SET_FLAGS = 0x40086602  # FS_IOC_SETFLAGS
_INTO = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


_numbers = itertools.count()


class Refused(ValueError):
    """The request cannot be granted; the text says why."""


class Places(NamedTuple):
    """Folders that the agent can write to, and their sizes.

    Attributes:
        workspace: the folder that snapshots hold.
        scratch: the other folders, which are emptied only.
        max_entries, max_bytes: limits of a snapshot.
    """

    workspace: str
    scratch: Sequence[str]
    max_entries: int
    max_bytes: int


@contextlib.contextmanager
def reached(places: Places) -> Iterator[None]:
    """As the agent, even if the agent changed the workspace's own mode; errors of files become refusals."""
    try:
        with privilege_drop.acting():
            os.chmod(places.workspace, 0o755)
            yield
    except OSError as error:
        raise Refused(error.strerror or str(error)) from None
    except RecursionError:  # a chain of links
        raise Refused(os.strerror(errno.ELOOP)) from None
    except (BadArchive, UnicodeError) as error:
        raise Refused(str(error)) from None


def read(places: Places, path: str, limit: int) -> bytes:
    """A regular file's content."""
    with reached(places), _above(places, path, make=False) as (above, name):
        handle = os.open(name, _READ, dir_fd=above)
        with os.fdopen(handle, "rb") as file:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                raise Refused(f"{path} is no regular file")
            content = file.read(limit + 1) if facts.st_size <= limit else b""
            if max(facts.st_size, len(content)) > limit:
                raise Refused(f"{path} holds {facts.st_size} bytes, which is more than {limit}")
            return content


def write(places: Places, path: str, content: bytes) -> None:
    """Replace a file completely or not at all; it stays executable if it was."""
    with reached(places), _above(places, path, make=True) as (above, name):
        mode = 0o644
        with contextlib.suppress(FileNotFoundError):
            facts = os.stat(name, dir_fd=above, follow_symlinks=False)
            if not stat.S_ISREG(facts.st_mode):
                raise Refused(f"{path} is no regular file")
            mode = 0o755 if facts.st_mode & 0o100 else 0o644
        aside = _unused(above)
        try:
            _make(aside, content, mode, above)
            os.rename(aside, name, src_dir_fd=above, dst_dir_fd=above)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(aside, dir_fd=above)
            raise


def snapshot(places: Places) -> tuple[str, bytes]:
    """Key and archive of the workspace. What is no file, folder or link is left out, what is locked is unlocked."""
    with reached(places):
        files = sorted(_walk(places), key=lambda item: order(item[0]))
        return pack(_load(places, path, mode) for path, mode in files)


def restore(places: Places, archive: bytes) -> None:
    """Empty all places and unpack into the workspace; an archive that is none changes nothing."""
    with reached(places):
        entries = unpack(archive, places.max_entries, places.max_bytes)
        for place in (places.workspace, *places.scratch):
            _empty(place)
        _forget(places.workspace)
        links = []
        for entry in entries:
            full = os.path.join(places.workspace, entry.path)
            if entry.kind == FOLDER:
                os.mkdir(full)
            elif entry.kind == FILE:
                _make(full, entry.content, 0o755 if entry.executable else 0o644, None)
            else:
                links.append((entry.content, os.fsencode(full)))
        for target, full_name in links:
            os.symlink(target, full_name)


@contextlib.contextmanager
def _above(places: Places, path: str, make: bool) -> Iterator[tuple[int, str]]:
    """The opened folder of a path, and the name in it; links inside of the workspace are followed beforehand."""
    if "\0" in path:
        raise Refused("a path has no NUL byte")
    full = os.path.realpath(os.path.join(places.workspace, path))
    if len(os.fsencode(full)) > _LONGEST:
        raise Refused(os.strerror(errno.ENAMETOOLONG))
    inside = os.path.relpath(full, places.workspace)
    parts = inside.split("/")
    if parts[0] in (".", ".."):
        raise Refused(f"{path} is not in {places.workspace}")
    folder = os.open(places.workspace, _INTO)
    try:
        for part in parts[:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, _INTO, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, parts[-1]
    finally:
        os.close(folder)


def _make(name: str, content: bytes, mode: int, folder: int | None) -> None:
    with os.fdopen(os.open(name, _MAKE, mode, dir_fd=folder), "wb", buffering=0) as file:
        left = memoryview(content)
        while left:
            left = left[file.write(left) :]


def _walk(places: Places) -> list[tuple[str, int]]:
    """Paths and modes of all that a snapshot holds."""
    files: list[tuple[str, int]] = []
    folders, total = [""], 0
    while folders:
        above = folders.pop()
        with os.scandir(os.path.join(places.workspace, above)) as items:
            for item in items:
                state = item.stat(follow_symlinks=False)
                if item.name in LEFT_OUT or stat.S_IFMT(state.st_mode) not in _KINDS:
                    continue
                path = os.path.join(above, item.name)
                files.append((path, state.st_mode))
                if stat.S_ISDIR(state.st_mode):
                    folders.append(path)
                else:
                    total += state.st_size
                if state.st_mode & 0o500 != 0o500 and stat.S_ISDIR(state.st_mode):
                    os.chmod(item.path, 0o755)
        if len(files) > places.max_entries or total > places.max_bytes:
            raise Refused(f"the workspace holds more than {places.max_entries} entries or {places.max_bytes} bytes")
    return files


def _load(places: Places, path: str, mode: int) -> ArchivedPath:
    full, kind, executable = os.path.join(places.workspace, path), _KINDS[stat.S_IFMT(mode)], bool(mode & 0o100)
    if kind == FOLDER:
        return ArchivedPath(path, kind)
    if kind == LINK:
        return ArchivedPath(path, kind, os.readlink(os.fsencode(full)))
    if not mode & 0o400:
        os.chmod(full, 0o755 if executable else 0o644)
    with os.fdopen(os.open(full, _READ), "rb", buffering=0) as file:
        return ArchivedPath(path, kind, file.readall(), executable)


def _empty(place: str) -> None:
    """Remove everything in a folder, however deep: a folder's folders are moved up before it is removed."""
    top = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _flatten(top)
    finally:
        os.close(top)


def _forget(folder: str) -> None:
    """All that the folder itself was made to remember: attributes, access lists, flags, times."""
    for name in os.listxattr(folder):
        os.removexattr(folder, name)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # not every kernel keeps flags here
            fcntl.ioctl(handle, _SET_FLAGS, bytes(8))
    finally:
        os.close(handle)
    os.chmod(folder, 0o755)
    os.utime(folder)


def _flatten(top: int) -> None:
    waiting = _clear(top)
    while waiting:
        name = waiting.pop()
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
        try:
            for inner in _clear(folder):
                aside = _unused(top)
                os.rename(inner, aside, src_dir_fd=folder, dst_dir_fd=top)
                waiting.append(aside)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=top)


def _unused(folder: int) -> str:
    """A name that a folder does not have."""
    while True:
        name = f".aside.{next(_numbers)}"
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return name


def _clear(folder: int) -> list[str]:
    """Unlink what is no folder; unlock and name those that are."""
    inner = []
    with os.scandir(folder) as items:
        for item in list(items):
            if item.is_dir(follow_symlinks=False):
                os.chmod(item.name, 0o700, dir_fd=folder)
                inner.append(item.name)
            else:
                os.unlink(item.name, dir_fd=folder)
    return inner
