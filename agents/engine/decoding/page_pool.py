"""The memory for keys and values: a fixed number of pages, which sequences take, share and give back.

All of it is set aside before the first token, so that it is known what can be kept; nothing grows and nothing is moved.
A page holds the keys and values of ``PAGE`` positions of one sequence, in every layer. Sequences that begin alike may
share pages.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

PAGE = 16
_EMPTY = 0  # the page that pads tables; it is never written and holds zeros


class CacheShape(NamedTuple):
    """The keys and values of one position.

    Attributes:
        layers: how many layers keep keys and values.
        heads: key-value heads of each.
        size: numbers in a key, and in a value, of a head.
        dtype: of the numbers.
    """

    layers: int
    heads: int
    size: int
    dtype: torch.dtype

    @property
    def position_bytes(self) -> int:
        """Bytes of the keys and values of one position."""
        return 2 * self.layers * self.heads * self.size * self.dtype.itemsize


class PagePool:
    """Keys and values, page by page.

    Args:
        shape: of a position.
        pages: how many there are.
        device: where they are.

    Attributes:
        most: pages that were used at once, at most.
    """

    def __init__(self, shape: CacheShape, pages: int, device: torch.device):
        self.shape, self.pages, self.device, self.most = shape, pages, device, 0
        self._free = list(range(pages, 0, -1))
        self._users = [0] * (pages + 1)
        self._stores: list[tuple[torch.Tensor, torch.Tensor]] = []  # keys and values of a layer: (pages, numbers)

    @property
    def spare(self) -> int:
        """A page that no sequence has: for what is written and never read."""
        return self.pages + 1

    @property
    def free(self) -> int:
        """Free pages."""
        return len(self._free)

    def users(self, page: int) -> int:
        """The number of sequences that use a page."""
        return self._users[page]

    def take(self, count: int) -> list[int]:
        """Take free pages, of which there must be enough."""
        taken = [self._free.pop() for _ in range(count)]
        for page in taken:
            self._users[page] = 1
        self.most = max(self.most, self.pages - len(self._free))
        return taken

    def share(self, page: int) -> None:
        """One more sequence uses a page."""
        self._users[page] += 1

    def give_back(self, pages: Iterable[int]) -> list[int]:
        """Give back the pages of a sequence; returns those that are free now."""
        freed = []
        for page in pages:
            self._users[page] -= 1
            if not self._users[page]:
                freed.append(page)
        self._free += freed[::-1]
        return freed

    def hold(self, dtype: torch.dtype) -> None:
        """Set the memory aside, if it is not, for numbers of the type that the model has now."""
        if self._stores:
            return
        self.shape = self.shape._replace(dtype=dtype)
        layers, heads, size, _ = self.shape
        numbers = (self.pages + 2, PAGE * heads * size)
        stores = [(_zeros(numbers, dtype, self.device), _zeros(numbers, dtype, self.device)) for _ in range(layers)]
        self._stores = stores  # all of it or nothing

    def let_go(self) -> None:
        """Free the memory. What it held is lost."""
        self._stores = []

    def write(self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Put down keys and values (T, heads, size); slot ``page * PAGE + i`` is place i of a page."""
        for store, new in zip(self._stores[layer], (keys, values), strict=True):
            store.view(-1, self.shape.heads * self.shape.size)[slots] = new.reshape(len(slots), -1)

    def read(self, layer: int, table: torch.Tensor, rows: int, seen: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values (rows, heads, seen, size) of the first positions, a copy.

        Args:
            table: the pages of all rows, as many for each.
        """
        place = (rows, -1, self.shape.heads, self.shape.size)
        keys, values = (store.index_select(0, table).view(place) for store in self._stores[layer])
        return keys[:, :seen].transpose(1, 2), values[:, :seen].transpose(1, 2)


def _zeros(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros, because an unseen position's weight of 0 times a stray NaN would be NaN."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    # The system hands out memory of this kind when it is first written to: pages never used cost nothing.
    return torch.from_numpy(np.zeros(shape[0] * shape[1] * dtype.itemsize, np.uint8)).view(dtype).view(shape)
