"""Which rows go into one forward pass: as few tokens as can be, none of the passes beyond what fits into memory."""

from collections.abc import Sequence

import numpy as np

from manyturn.trainers.learn.passes.trie.tree import in_order, new_tokens


def passes(rows: Sequence[np.ndarray], most: int, least: int | None) -> list[list[int]]:
    """Numbers of rows in groups, each of whose trees has at most ``most`` nodes, unless a row alone has more.

    A cut lies between rows, and the rows after it compute their common beginning again. Of all cuts of the ordered
    rows these have the fewest nodes in total, and of those with equally many the fewest groups.

    >>> rows = [np.array([1, 1, 1, 2]), np.array([3, 3, 3, 4]), np.array([1, 1, 1, 5]), np.array([3, 3, 3, 6])]
    >>> passes(rows, most=5, least=1), passes(rows, most=5, least=None)
    ([[3, 1], [2, 0]], [[3], [1], [2], [0]])

    Args:
        least: see ``Tree.of``.
    """
    order, shared = in_order(rows)
    lengths = np.array([len(rows[row]) for row in order], np.int64)
    before = np.cumsum(new_tokens(rows, order, shared, least))  # nodes of the rows up to each, were there no cut
    # Groups that begin at row i and end at row j have more[i] + before[j] nodes.
    more = lengths - before
    best, begins = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows), np.int64)
    for last in range(len(rows)):
        total = (best[: last + 1] + 1) + (more[: last + 1] + before[last]) * (len(rows) + 1)
        fits = more[: last + 1] + before[last] <= most
        fits[last] = True
        begins[last] = np.where(fits, total, np.iinfo(np.int64).max).argmin()
        best[last + 1] = total[begins[last]]
    groups, end = list[list[int]](), len(rows)
    while end:
        begin = int(begins[end - 1])
        groups.append(list(order[begin:end]))
        end = begin
    return groups[::-1]
