"""How samples of different lengths share a forward pass.

padding   each in a row of its own, as long as the longest; alike lengths go together
packed    one after the other, each attending to itself
trie      likewise, but what samples begin with alike is computed once
auto      trie where that saves a tenth of the tokens or more, otherwise packed
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
