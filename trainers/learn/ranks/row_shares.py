"""Split of rows over ranks: shares of about as many distinct tokens."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from manyturn.trainers.learn.passes.trie.tree import in_order, new_tokens


def shares(
    rows: Sequence[np.ndarray], ranks: int, least: int | None, more: Sequence[int] | None = None
) -> list[list[int]]:
    """Numbers of rows for each rank, so that the largest share has as few nodes as a cut of the ordered rows allows.

    Rows that begin alike stay together, since a rank computes their common beginning once.

    >>> rows = [np.array([1, 1, 1, 2]), np.array([3, 3, 3, 4]), np.array([1, 1, 1, 5]), np.array([3, 3, 3, 6])]
    >>> shares(rows, 2, least=1), shares(rows[:1], 2, least=1)
    ([[3, 1], [2, 0]], [[0], []])

    Args:
        least: see ``Tree.of``.
        more: nodes of each row that no other one shares, besides its own tokens.
    """
    order, shared = in_order(rows)
    own = [0 if more is None else more[row] for row in order]
    new = (new_tokens(rows, order, shared, least) + np.array(own, np.int64)).tolist()
    lengths = [len(rows[row]) + extra for row, extra in zip(order, own, strict=True)]
    low, high = max(lengths, default=0), sum(lengths)
    while low < high:
        most = (low + high) // 2
        if len(_cut(lengths, new, most)) <= ranks:
            high = most
        else:
            low = most + 1
    begins = [*_cut(lengths, new, low), len(order)]
    rows_by_rank = [list(order[begin:end]) for begin, end in pairwise(begins)]
    return rows_by_rank + [[] for _ in range(ranks - len(rows_by_rank))]


def _cut(lengths: Sequence[int], new: Sequence[int], most: int) -> list[int]:
    """First rows of the shares, each of which has as many rows as ``most`` nodes allow.

    Args:
        lengths: tokens of each row, none of which has more than ``most``.
        new: nodes that it adds to those before it.
    """
    begins, size = list[int](), most + 1
    for number, (length, added) in enumerate(zip(lengths, new, strict=True)):
        size += added
        if size > most:
            begins.append(number)
            size = length
    return begins
