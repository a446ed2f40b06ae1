"""Items of one long JSON array or object, one at a time, in memory that does not grow with the file.

The standard library reads a value where it begins; only finding the values and reading on is left to do.
"""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

_READ = 1 << 20  # bytes at a time
_LONGEST = 1 << 26  # characters of a value: what goes on for longer is faulty, and is not read to the end
_BETWEEN = re.compile(r"[\s,:]*")


def array_items(file: Path) -> Iterator[Any]:
    """The values of a file that holds one array. Raises ValueError if it holds something else or is cut off."""
    with file.open("rb") as stream:
        reader = _Reader(stream)
        reader.enter("[")
        while reader.peek() != "]":
            yield reader.value()


def object_items(file: Path) -> Iterator[tuple[str, Any]]:
    """Names and values of a file that holds one object. Raises ValueError as ``array_items`` does."""
    with file.open("rb") as stream:
        reader = _Reader(stream)
        reader.enter("{")
        while reader.peek() != "}":
            yield reader.value(), reader.value()


class _Reader:
    """Reads values from a stream; what was read is forgotten."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text, self._spot = "", 0
        self._parse = json.JSONDecoder().raw_decode

    def enter(self, bracket: str) -> None:
        if self.peek() != bracket:
            raise ValueError(f"it does not begin with {bracket}")
        self._spot += 1

    def peek(self) -> str:
        """The first character of what comes next, which stays."""
        while True:
            if between := _BETWEEN.match(self._text, self._spot):
                self._spot = between.end()
            if self._spot < len(self._text):
                return self._text[self._spot]
            if not self._more(_READ):
                raise ValueError("it is cut off")

    def value(self) -> Any:
        """The next value, a text or something in brackets: of these the end is known."""
        if self.peek() not in '"[{':
            raise ValueError(f"{self._text[self._spot :][:20]!r} is no text, array or object")
        size = _READ
        while True:
            try:
                value, self._spot = self._parse(self._text, self._spot)
                return value
            except ValueError:
                if len(self._text) - self._spot > _LONGEST or not self._more(size):
                    raise
                size *= 2  # so that a value far longer than one reading is not parsed again and again

    def _more(self, size: int) -> bool:
        """Read on; False at the end of the file."""
        read = self._stream.read(size)
        self._text, self._spot = self._text[self._spot :] + self._decode(read, final=not read), 0
        return bool(read)
