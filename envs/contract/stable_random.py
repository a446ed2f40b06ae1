"""Random draws that stay the same in every Python and NumPy version, because a task id names one problem for ever."""

import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

from manyturn.envs.contract.random_keys import digest

T = TypeVar("T")
_WORDS = 192


class Draws:
    """Draws that depend on a key alone (SHAKE-256 in counter mode).

    Args:
        key: plain values.
    """

    def __init__(self, *key: Any):
        self._key = digest(*key).encode()
        self._block = 0
        self._words = self._refill()

    def _refill(self) -> memoryview:
        data = hashlib.shake_256(b"%s/%d" % (self._key, self._block)).digest(4 * _WORDS)
        self._block += 1
        self._at = 0
        # Little-endian on every machine this runs on; "I" has four bytes there.
        return memoryview(data).cast("I")

    def below(self, limit: int) -> int:
        """A whole number in [0, limit); the bias is below limit / 2**32."""
        if self._at == _WORDS:
            self._words = self._refill()
        self._at += 1
        return self._words[self._at - 1] * limit >> 32

    def between(self, low: int, high: int) -> int:
        """A whole number in [low, high]."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]
