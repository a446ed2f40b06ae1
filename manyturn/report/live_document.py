"""The document of a folder that may still be written to, read again whenever its files have changed."""

import contextlib
import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.report.document import document_of, waiting_document
from manyturn.report.report_head import ReportError

_FOLDERS = ("", "episodes", "turns", "evaluation")


class TaggedDocument(NamedTuple):
    """A document as JSON, and a tag that differs from every other's."""

    body: bytes
    tag: str


class Follower:
    """Gives the newest document of a run or an evaluation; threads may share it.

    Steps that were read once are not read again. A folder that is missing or cannot be read is waited for: the document
    says so in a warning, and shows what was there before.

    Args:
        path: the folder; it may come into being later.
    """

    def __init__(self, path: Path):
        self._path = path
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[int, int]] | None = None
        self._document = waiting_document(path, "")
        self._answer = TaggedDocument(b"", "")

    def newest(self) -> TaggedDocument:
        """The document as the files are now."""
        with self._lock:
            # Looked at before they are read: what changes meanwhile is read the next time.
            seen = _state(self._path)
            if seen != self._seen:
                self._seen, plain = seen, self._read()
                body = _json(plain)
                self._answer = TaggedDocument(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
            return self._answer

    def chunk(self, index: int, tag: str) -> bytes:
        """Traces of a document, as JSON.

        Args:
            tag: of the document that the index is of.

        Raises:
            IndexError: there is no such chunk.
            ReportError, RecordsError: another document was given since, or its files have changed or are gone.
        """
        with self._lock:
            document = self._document
            if tag != self._answer.tag:
                raise ReportError("the list of episodes has changed: ask for the document again")
        return _json(document.chunk(index))

    def _read(self) -> dict[str, Any]:
        try:
            self._document = document_of(self._path, live=True)
            return self._document.plain
        except (ValueError, OSError) as error:
            if not self._document.places:
                self._document = waiting_document(self._path, f"waiting for a run or an evaluation: {error}")
                return self._document.plain
            plain = self._document.plain
            return {**plain, "warnings": [f"shows what was there before: {error}", *plain["warnings"]]}


def _state(path: Path) -> dict[str, tuple[int, int]]:
    """Time and size of the files that a document can depend on."""
    files = {}
    for folder in _FOLDERS:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(path / folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    stat = entry.stat()
                    files[entry.path] = stat.st_mtime_ns, stat.st_size
    return files


def _json(plain: object) -> bytes:
    return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode()
