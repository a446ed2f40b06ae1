"""Which rows each rank computes: shares of about as many distinct tokens."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from manyturn.trainers.learn.passes.trie.tree import in_order, new_tokens


def shares(rows: Sequence[np.ndarray], ranks: int, least: int | None) -> list[list[int]]:
    """Numbers of rows for each rank, so that the largest share has as few nodes as a cut of the ordered rows allows.

    Rows that begin alike stay together, since a rank computes their common beginning once.

    >>> rows = [np.array([1, 1, 1, 2]), np.array([3, 3, 3, 4]), np.array([1, 1, 1, 5]), np.array([3, 3, 3, 6])]
    >>> shares(rows, 2, least=1), shares(rows[:1], 2, least=1)
    ([[3, 1], [2, 0]], [[0], []])

    Args:
        least: see ``Tree.of``.
    """
    order, shared = in_order(rows)
    new = new_tokens(rows, order, shared, least).tolist()
    whole = [len(rows[row]) for row in order]
    low, high = max(whole, default=0), sum(whole)
    while low < high:
        most = (low + high) // 2
        if len(_cut(whole, new, most)) <= ranks:
            high = most
        else:
            low = most + 1
    begins = [*_cut(whole, new, low), len(order)]
    found = [list(order[begin:end]) for begin, end in pairwise(begins)]
    return found + [[] for _ in range(ranks - len(found))]


def _cut(whole: Sequence[int], new: Sequence[int], most: int) -> list[int]:
    """Where shares begin, each of which has as many rows as ``most`` nodes allow.

    Args:
        whole: tokens of each row, none of which has more than ``most``.
        new: nodes that it adds to those before it.
    """
    begins, size = list[int](), most + 1
    for number, (alone, added) in enumerate(zip(whole, new, strict=True)):
        size += added
        if size > most:
            begins.append(number)
            size = alone
    return begins
