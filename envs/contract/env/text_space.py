"""The space of all Unicode text up to a length."""

from typing import Any

import numpy as np
from gymnasium.spaces import Space

_SAMPLE = "abcdefghijklmnopqrstuvwxyz éß→漢🙂"


class TextSpace(Space[str]):
    """Every string of at most ``max_length`` characters.

    ``gymnasium.spaces.Text`` names each allowed character and rejects or crashes on others; an agent may write
    anything.
    """

    def __init__(self, max_length: int = 1_000_000, seed: int | np.random.Generator | None = None):
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, not {max_length}")
        self.max_length = max_length
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short random string, accents and emoji among its characters."""
        if mask is not None or probability is not None:
            raise ValueError("TextSpace.sample takes neither mask nor probability")
        length = int(self.np_random.integers(1, min(16, self.max_length) + 1))
        return "".join(_SAMPLE[i] for i in self.np_random.integers(0, len(_SAMPLE), length))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextSpace) and other.max_length == self.max_length

    def __repr__(self) -> str:
        return f"TextSpace(max_length={self.max_length})"
