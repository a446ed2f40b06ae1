"""Rows of measurements, each on disk as soon as it is there, and the code that it depends on.

A row has the hash of the files that its process had loaded or read until then. It counts as long as these files have
the same content, whatever else was committed since, so that rows of several days make one table.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.kit.provenance import RESULTS, ROOT, STAMP

Row = dict[str, Any]
Figures = Mapping[str, Any]
_FOLDERS = ("manyturn", "envs", "agents", "trainers", "containers", "benchmarks", "tests", "gpu-kit")
# Outputs, and what names the commit.
_LEFT_OUT = (*(str(path.relative_to(ROOT)) for path in (RESULTS, STAMP)), "gpu-kit/journal/")
_hashing = False  # what is opened to be hashed is read by nobody


class Dependencies:
    """The files of the project that this process has loaded as modules or opened for reading.

    Make it before anything else is imported: what was opened earlier is not seen. Modules are seen in any case.
    """

    def __init__(self) -> None:
        self._opened = set[str]()
        sys.addaudithook(self._note_file)

    def files(self) -> list[str]:
        """Their names relative to the project, in order."""
        modules = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        return sorted(filter(None, map(_name, self._opened | {path for path in modules if path})))

    def _note_file(self, event: str, words: tuple[Any, ...]) -> None:
        if (
            event == "open"
            and not _hashing
            and isinstance(words[0], str)
            and not (words[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        ):
            self._opened.add(words[0])


def _name(path: str) -> str | None:
    """The name of a file of the project; None for any other and for what is an output."""
    full = Path(path).resolve()
    if not full.is_relative_to(ROOT) or full.suffix == ".pyc":
        return None
    name = str(full.relative_to(ROOT))
    return (
        name if name.startswith(tuple(f"{folder}/" for folder in _FOLDERS)) and not name.startswith(_LEFT_OUT) else None
    )


def digest(files: Iterable[str]) -> str:
    """A hash of the names and contents of files of the project; of one that is gone, of its name only."""
    global _hashing
    total, _hashing = hashlib.sha256(), True
    try:
        for name in files:
            path = ROOT / name
            content = path.read_bytes() if path.is_file() else b""
            total.update(f"{name}\0{len(content)}\0".encode() + content)
    finally:
        _hashing = False
    return total.hexdigest()[:16]


@dataclass
class Journal:
    """The rows of a folder, and the files behind each hash.

    Args:
        folder: holds ``rows.jsonl`` and ``code.jsonl``; made if it is missing.
        origin: entries of every row that is written: device, versions, commit and so on.
    """

    folder: Path
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in (self._rows, self._code):
            if path.is_file():  # what is written next must not hang on a line that was cut off
                complete, end, _ = path.read_text().rpartition("\n")
                path.write_text(complete + end)

    @property
    def _rows(self) -> Path:
        return self.folder / "rows.jsonl"

    @property
    def _code(self) -> Path:
        return self.folder / "code.jsonl"

    def rows(self) -> list[Row]:
        """All of them, the oldest first."""
        return _lines(self._rows)

    def current(self) -> list[Row]:
        """The last row of each case of each kind of device, of those that today's code would make again.

        A case that failed has its failure only where no row without one is current.
        """
        files = {line["code"]: line["files"] for line in _lines(self._code)}
        same = {code: digest(names) == code for code, names in files.items()}
        latest = dict[tuple[Any, ...], Row]()
        for row in self.rows():
            place = (row["item"], row["case"], row["device"], row["toy"])
            if same.get(row["code"]) and ("error" not in row or place not in latest):
                latest[place] = row
        return list(latest.values())

    def write(self, item: str, case: str, seconds: float, files: Sequence[str], content: Figures) -> Row:
        """Add a row.

        Args:
            files: that it depends on.
            content: ``figures``, or ``error`` and ``traceback``, or ``skipped``.
        """
        code = digest(files)
        if code not in {line["code"] for line in _lines(self._code)}:
            _append(self._code, {"code": code, "files": list(files)})
        today = datetime.now(UTC).strftime("%Y-%m-%d")
        row = {"item": item, "case": case, **self.origin, "code": code, "date": today, "seconds": round(seconds, 1)}
        row |= content
        _append(self._rows, row)
        return row


def _append(path: Path, line: Row) -> None:
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _lines(path: Path) -> list[Row]:
    """The lines of a file; a last one that was cut off is none."""
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.is_file() else []
