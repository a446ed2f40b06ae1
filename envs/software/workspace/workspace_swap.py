"""Files of episodes that rest, on disk and packed: hundreds may rest, and each may hold all that its agent can write.

All of a process lie in one file that has no name, so nothing is left of it however the process ends. It has a budget.
Beyond that the largest go first: who has written most loses it, and nobody else does.
"""

import itertools
import os
import tempfile
import threading
import weakref
import zlib
from collections import deque
from collections.abc import Sequence
from typing import IO, NamedTuple

BUDGET_MB = 4096
"""Of disk, for one process."""
_LEVEL = 1


class Parcel:
    """Stored bytes; the spool keeps them for as long as this object lives."""

    def __init__(self, key: int, lengths: Sequence[int]):
        self.key, self.lengths = key, tuple(lengths)


class _Span(NamedTuple):
    start: int
    length: int


class ParkedFiles:
    """Keeps bytes for later. Any number of threads may use it.

    Args:
        budget: bytes of disk.
    """

    def __init__(self, budget: int = BUDGET_MB << 20):
        self._budget = budget
        self._lock, self._keys = threading.Lock(), itertools.count()
        self._file: IO[bytes] | None = None
        self._spans = dict[int, _Span]()
        self._forgotten = deque[int]()  # objects die at any moment, in the middle of what is done here too

    def lay_down(self, parts: Sequence[bytes]) -> Parcel | None:
        """Keep some bytes, unless they are the largest and too many; None where the disk has no room."""
        packer = zlib.compressobj(_LEVEL)
        packed = b"".join([*map(packer.compress, parts), packer.flush()])
        parcel = Parcel(next(self._keys), [len(part) for part in parts])
        with self._lock:
            self._tidy_up()
            span = self._spans[parcel.key] = self._gap(len(packed))
            while self._held() > self._budget:
                del self._spans[max(self._spans, key=lambda key: self._spans[key].length)]
            if parcel.key in self._spans and not self._written(span.start, packed):
                del self._spans[parcel.key]
                return None
        weakref.finalize(parcel, self._forgotten.append, parcel.key).atexit = False
        return parcel

    def take_up(self, parcel: Parcel) -> list[bytes] | None:
        """Stored bytes, once; None if they were too many."""
        with self._lock:
            span = self._spans.pop(parcel.key, None)
            if span is None or self._file is None:
                return None
            packed = os.pread(self._file.fileno(), span.length, span.start)
        data, ends = zlib.decompress(packed), list(itertools.accumulate(parcel.lengths))
        return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def held(self) -> int:
        """Bytes of disk that are taken."""
        with self._lock:
            self._tidy_up()
            return self._held()

    def _held(self) -> int:
        return sum(span.length for span in self._spans.values())

    def _tidy_up(self) -> None:
        while self._forgotten:
            self._spans.pop(self._forgotten.popleft(), None)
        if not self._spans and self._file is not None:
            self._file.truncate(0)

    def _gap(self, length: int) -> _Span:
        """The first that is long enough."""
        place = 0
        for span in sorted(self._spans.values()):
            if span.start - place >= length:
                break
            place = span.start + span.length
        return _Span(place, length)

    def _written(self, place: int, data: bytes) -> bool:
        left = memoryview(data)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=_folder(), buffering=0)  # noqa: SIM115  # as long as this lives
            while left:
                count = os.pwrite(self._file.fileno(), left, place)
                left, place = left[count:], place + count
        except OSError:
            return False
        return True

    def abandon(self) -> None:
        """A fork has no part in it: its writes would go into the same file."""
        self._lock, self._file, self._spans = threading.Lock(), None, {}


def _folder() -> str | None:
    """Folder that the user names, or /var/tmp: the system's default, /tmp, is often memory."""
    if os.environ.get("TMPDIR") or not os.access("/var/tmp", os.W_OK):
        return None
    return "/var/tmp"
