"""Names that a word was meant as, whatever its capitals."""

import difflib
from collections.abc import Iterable


def near_names(word: object, names: Iterable[str], n: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most ``n`` of the names that look like a word, the nearest first.

    >>> near_names("Maze-V0", ["Maze-v0", "Maze-v1", "Shop-v0"])
    ['Maze-v0']
    """
    named = {name.lower(): name for name in names}
    return [named[near] for near in difflib.get_close_matches(str(word).lower(), named, n=n, cutoff=cutoff)]
