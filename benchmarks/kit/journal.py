"""Figures of a measurement that may be interrupted: each is written down as soon as it is there."""

import json
from pathlib import Path
from typing import Any, Generic, TypeVar

Figure = TypeVar("Figure")


class Journal(Generic[Figure]):
    """Figure by the name of a row and a problem's id, as far as it is known."""

    def __init__(self, file: Path, commit: str):
        self._file, self.figures = file, dict[str, dict[str, Figure]]()
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        if lines and lines[0] != {"commit": commit}:
            raise SystemExit(f"{file} is of another commit: give another --journal")
        if not lines:
            self._append({"commit": commit})
        for row, name, figure in lines[1:]:
            self.figures.setdefault(row, {})[name] = figure

    def add(self, row: str, name: str, figure: Figure) -> None:
        self._append([row, name, figure])
        self.figures.setdefault(row, {})[name] = figure

    def _append(self, record: Any) -> None:
        with self._file.open("a") as stream:
            stream.write(json.dumps(record) + "\n")
