"""A journal of finished episodes: one JSON line each with its checksum, so that work that was interrupted continues."""

import errno
import fcntl
import json
import os
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from manyturn.envs.contract.atomic_files import clear_leftovers, replace_text
from manyturn.envs.contract.credential_mask import masked
from manyturn.envs.contract.options.config_diff import changes

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a disk without space."""
_SYNC_LINES, _SYNC_SECONDS = 64, 0.2


class DiskFull(RuntimeError):
    """The folder cannot be written to; what was saved before is intact."""


class JournalError(RuntimeError):
    """The journal cannot be used; the text says how to fix it."""


class OtherSettings(JournalError):
    """The journal was begun with other settings.

    Args:
        folder: the journal's.
        began, now: all settings of both.
    """

    def __init__(self, folder: Path, began: Mapping[str, Any], now: Mapping[str, Any]):
        self.folder, self.began, self.now = folder, began, now
        self.odd = [name for name in {**began, **now} if began.get(name) != now.get(name)]
        words = [f"{place} was {was} and is {present}" for place, (was, present) in changes(began, now).items()]
        super().__init__(
            f"{folder} was begun with other settings: {', '.join(words)}. Write to another folder, or continue with "
            "the settings that it was begun with"
        )


class Journal:
    """Appends lines to a file and gives back those that are there, as a context manager.

    Each line reaches the operating system immediately, so a killed process loses none that was written; the disk has
    them after 64 lines or 200 ms, so that a power cut costs little. A torn last line is cut off, and lines whose CRC-32
    is wrong are skipped: what they held is to be done again.

    Args:
        path: the file; the first line holds the settings.
        settings: plain values; a journal that was begun with others is refused.

    Attributes:
        entries: the lines that were found, in the order of writing.

    Raises:
        JournalError: on entering, if the settings differ, the file is no journal, or another process writes it.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]):
        self.path = path
        self.settings: dict[str, Any] = json.loads(masked(json.dumps(settings)))
        self.entries: list[dict[str, Any]] = []
        self._file: BinaryIO | None = None
        self._unsynced, self._synced = 0, time.monotonic()

    def __enter__(self) -> Self:
        if not self.path.exists() or not self.path.stat().st_size:  # empty, as after a loss of power
            replace_text(self.path, _framed({"settings": self.settings}).decode())
        self._file = self.path.open("r+b")
        try:
            self._lock()
            clear_leftovers(self.path.parent)
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        self._sync()
        self._file.close()

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write a line."""
        assert self._file is not None
        self._file.write(_framed(entry))
        self._file.flush()
        self._unsynced += 1
        if self._unsynced >= _SYNC_LINES or time.monotonic() - self._synced >= _SYNC_SECONDS:
            self._sync()

    def _sync(self) -> None:
        assert self._file is not None
        os.fsync(self._file.fileno())
        self._unsynced, self._synced = 0, time.monotonic()

    def _lock(self) -> None:
        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise JournalError(
                f"{self.path} is being written by another process: wait for it, or write to another folder"
            ) from None

    def _read(self) -> None:
        assert self._file is not None
        head, *lines = self._file.read().split(b"\n")
        self._file.seek(0, os.SEEK_END)
        if lines and lines[-1]:
            self._file.seek(-len(lines.pop()), os.SEEK_END)
            self._file.truncate()
        try:
            begun_with = _unframed(head)["settings"]
        except (ValueError, KeyError):
            raise JournalError(f"{self.path} is not a journal: remove it, or write to another folder") from None
        if begun_with != self.settings:
            raise OtherSettings(self.path.parent, begun_with, self.settings)
        for line in lines:
            try:
                self.entries.append(_unframed(line))
            except ValueError:
                continue


def _framed(entry: Mapping[str, Any]) -> bytes:
    text = masked(json.dumps(entry, separators=(",", ":"))).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _unframed(line: bytes) -> dict[str, Any]:
    """The entry of a line; raises ValueError if it is not as it was written."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise ValueError("the checksum is wrong")
    return json.loads(text)


def journal_entries(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a journal that another process may be writing, after its settings; none without a file."""
    entries = list[dict[str, Any]]()
    try:
        lines = path.read_bytes().split(b"\n")[1:]
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            entries.append(_unframed(line))
        except ValueError:
            continue
    return entries
