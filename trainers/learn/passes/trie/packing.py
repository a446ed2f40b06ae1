"""Forms in which samples of different lengths share a forward pass.

padding   each in a row of its own, as long as the longest; alike lengths go together
packed    one after the other, each attending to itself
trie      likewise, but what samples begin with alike is computed once
auto      trie where that saves a tenth of the tokens or more, otherwise packed

Rows are grouped into passes of as few tokens as possible, none of which has more than fits into memory.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from manyturn.trainers.learn.passes.trie.tree import in_order, new_tokens

Packing = Literal["padding", "packed", "trie", "auto"]

# Fewest tokens that are worth sharing; see ``Tree.of``.
_SHARED = 16
LEAST: dict[Packing, int | None] = {"packed": None, "trie": _SHARED, "auto": _SHARED}
_WORTH = 0.9  # of the tokens, at which copies of shared keys cost what is saved; benchmarks/results/learner.json


def least_of(packing: Packing, rows: Sequence[np.ndarray], most: int | None = None) -> int | None:
    """Fewest tokens that are worth sharing in a pass over these rows; None shares nothing. It follows from them alone.

    >>> alike, unlike = [np.arange(40)] * 2, [np.arange(40), np.arange(40)[::-1]]
    >>> least_of("auto", alike), least_of("auto", unlike), least_of("auto", unlike, most=79)
    (16, None, 16)

    Args:
        most: tokens that a pass may compute; where all would be more, it shares what it can.
    """
    if packing != "auto":
        return LEAST[packing]
    order, shared = in_order(rows)
    tokens, nodes = sum(map(len, rows)), int(new_tokens(rows, order, shared, _SHARED).sum())
    return _SHARED if nodes < _WORTH * tokens or (most is not None and tokens > most) else None


def passes(
    rows: Sequence[np.ndarray], most: int, least: int | None, more: Sequence[int] | None = None
) -> list[list[int]]:
    """Numbers of rows in groups, each of whose trees has at most ``most`` nodes, unless a row alone has more.

    A cut lies between rows, and the rows after it compute their common beginning again. Of all cuts of the ordered
    rows these have the fewest nodes in total, and of those with equally many the fewest groups.

    >>> rows = [np.array([1, 1, 1, 2]), np.array([3, 3, 3, 4]), np.array([1, 1, 1, 5]), np.array([3, 3, 3, 6])]
    >>> passes(rows, most=5, least=1), passes(rows, most=5, least=None)
    ([[3, 1], [2, 0]], [[3], [1], [2], [0]])

    Args:
        least: see ``Tree.of``.
        more: nodes of each row that no other one shares, besides its own tokens.
    """
    order, shared = in_order(rows)
    own = np.zeros(len(rows), np.int64) if more is None else np.array(more, np.int64)[order]
    lengths = np.array([len(rows[row]) for row in order], np.int64) + own
    before = np.cumsum(new_tokens(rows, order, shared, least) + own)  # nodes of the rows up to each, were there no cut
    # Groups that begin at row i and end at row j have first[i] + before[j] nodes.
    first = lengths - before
    best, begins = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows), np.int64)
    for last in range(len(rows)):
        total = (best[: last + 1] + 1) + (first[: last + 1] + before[last]) * (len(rows) + 1)
        fits = first[: last + 1] + before[last] <= most
        fits[last] = True
        begins[last] = np.where(fits, total, np.iinfo(np.int64).max).argmin()
        best[last + 1] = total[begins[last]]
    groups, end = list[list[int]](), len(rows)
    while end:
        begin = int(begins[end - 1])
        groups.append(list(order[begin:end]))
        end = begin
    return groups[::-1]
