"""How samples of different lengths share a forward pass.

padding   each in a row of its own, as long as the longest; alike lengths go together
packed    one after the other, each attending to itself
trie      likewise, but what samples begin with alike is computed once
"""

from typing import Literal

Packing = Literal["padding", "packed", "trie"]

# Fewest tokens that are worth sharing; see ``Tree.of``.
LEAST: dict[Packing, int | None] = {"packed": None, "trie": 16}
