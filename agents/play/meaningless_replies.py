"""Replies that mean nothing, made from one that means something: what a policy says while it learns to speak.

the beginning of a command      guess 689  ->  guess
its first word again            guess 689  ->  guessguess
something in it that is not     guess 689  ->  guess 689689
"""

from collections.abc import Collection

import numpy as np


def mistaken(action: str, admissible: Collection[str], rng: np.random.Generator) -> str:
    """A text that is like an action and is none of those that are admissible.

    >>> rng = np.random.default_rng(0)
    >>> sorted({mistaken("guess 689", (), rng) for _ in range(50)})
    ['guess', 'guess 689689', 'guessguess']
    """
    words = action.split() or ["?"]
    first, last = words[0], words[-1]
    begun = " ".join(words[:-1]) or first[: max(1, len(first) // 2)]
    made = [begun, first * 2, " ".join([*words[:-1], last * 2])][int(rng.integers(3))]
    while made in admissible or made == action:
        made += last
    return made
