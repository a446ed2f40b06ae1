"""Equality of results, and the parts of a reward for an answer that comes close."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from manyturn.envs.sql.read_only_database import Result
from manyturn.envs.sql.schema import Row

PARTS = {"executes": 0.05, "columns": 0.1, "overlap": 0.15}
"""Reward part -> what it pays at most; in all less than the outcome."""
_DIGITS = 6


def same(given: Sequence[Row], right: Sequence[Row], ordered: bool) -> bool:
    """True if two results are equal: the same rows as often, and in the same order where the question asks for one.

    >>> same([(1.0, "a"), (2, "b")], [(2, "b"), (1, "a")], ordered=False), same([(1,)], [(1,), (1,)], ordered=False)
    (True, False)
    """
    left, other = [_plain(row) for row in given], [_plain(row) for row in right]
    return left == other if ordered else Counter(left) == Counter(other)


def overlap(given: Sequence[Row], right: Sequence[Row]) -> float:
    """F1 of the rows of two results, counted as often as they occur.

    >>> overlap([(1,), (2,)], [(2,), (3,)]), overlap([], [(1,)])
    (0.5, 0.0)
    """
    left, other = Counter(map(_plain, given)), Counter(map(_plain, right))
    shared = (left & other).total()
    return 2 * shared / (left.total() + other.total()) if shared else 0.0


def shared_columns(given: Result, right: Result) -> float:
    """Columns that both queries read, of those that either does (Jaccard index)."""
    either = given.reads | right.reads
    return len(given.reads & right.reads) / len(either) if either else 0.0


def parts(given: Result, right: Result) -> dict[str, float]:
    """The partial rewards of an answer that ran."""
    shares = {"executes": 1.0, "columns": shared_columns(given, right), "overlap": overlap(given.rows, right.rows)}
    return {name: PARTS[name] * share for name, share in shares.items() if share}


def _plain(row: Row) -> tuple[Any, ...]:
    return tuple(_value(value) for value in row)


def _value(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else round(value, _DIGITS)
