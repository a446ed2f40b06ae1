"""Differences of two configurations, entry by entry."""

from collections.abc import Iterator, Mapping
from typing import Any

_SHOWN = 3
_UNSET = "unset"


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Entries that differ, by their place, with both values.

    >>> changes({"learner": {"lr": 0.1}, "steps": 5}, {"learner": {"lr": 0.2}, "steps": 5})
    {'learner.lr': (0.1, 0.2)}
    """
    return dict(_differences(before, now, ""))


def shown(differences: Mapping[str, tuple[Any, Any]]) -> str:
    """The first of them, in words."""
    words = [f"{place} was {was!r:.60} and is {now!r:.60}" for place, (was, now) in list(differences.items())[:_SHOWN]]
    more = len(differences) - len(words)
    return ", ".join(words) + (f", and {more} more" if more else "")


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], above: str
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in dict.fromkeys([*before, *now]):
        was, is_ = before.get(name, _UNSET), now.get(name, _UNSET)
        if isinstance(was, Mapping) and isinstance(is_, Mapping):
            yield from _differences(was, is_, f"{above}{name}.")
        elif was != is_:
            yield f"{above}{name}", (was, is_)
