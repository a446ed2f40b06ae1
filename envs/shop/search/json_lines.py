"""JSON values on disk, one a line, read by number without holding the others."""

import json
import mmap
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def write_lines(file: Path, values: Iterable[Any]) -> None:
    """Write values to ``FILE.jsonl`` as they come, and where each one ends to ``FILE.npy``."""
    ends, spot = array("q"), 0
    with file.with_suffix(".jsonl").open("wb") as stream:
        for value in values:
            spot += stream.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
            ends.append(spot)
    np.save(file.with_suffix(".npy"), np.array(ends, np.int64))


class JsonLines(Sequence[Any]):
    """The values that ``write_lines`` wrote; the file is mapped, so processes share what they read.

    Args:
        file: without a suffix.

    Raises:
        ValueError: the file is longer or shorter than what was written.
    """

    def __init__(self, file: Path):
        self._ends = load_array(file)
        self._text: mmap.mmap | bytes = b""
        text = file.with_suffix(".jsonl")
        size, written = text.stat().st_size, int(self._ends[-1]) if len(self) else 0
        if size != written:
            raise ValueError(f"{text} has {size:,} bytes instead of {written:,}")
        if len(self):
            with text.open("rb") as stream:
                self._text = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number):
        if not 0 <= number < len(self):
            raise IndexError(f"line {number} of {len(self)}")
        return json.loads(self._text[self._ends[number - 1] if number else 0 : self._ends[number]])

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))


class SortedTexts:
    """Text -> its place among sorted texts on disk.

    Args:
        file: of ``write_lines``; its values are different texts in order.
    """

    def __init__(self, file: Path):
        self.texts = JsonLines(file)

    def __len__(self) -> int:
        return len(self.texts)

    def get(self, text: str) -> int | None:
        """None if the text is not among them."""
        place = bisect_left(self.texts, text)
        return place if place < len(self.texts) and self.texts[place] == text else None


def load_array(file: Path) -> np.ndarray:
    """An array on disk, mapped: ``FILE.npy``."""
    return np.asarray(np.load(file.with_suffix(".npy"), mmap_mode="r"))
