"""Selection of episodes for a report that cannot carry all: complete groups, spread evenly."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeVar

Member = TypeVar("Member", int, tuple[int, int])


def spread_order(count: int) -> list[int]:
    """0 to count - 1, each once, so that every beginning of the list is spread over all of it.

    >>> spread_order(7)
    [0, 6, 3, 1, 4, 2, 5]
    """
    order = list(range(count))[:: max(1, count - 1)]
    gaps = deque([(0, count - 1)])
    while gaps:
        low, high = gaps.popleft()
        if high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            gaps += (low, middle), (middle, high)
    return order


def quotas(sizes: Sequence[int], limit: int, sure: int = 4) -> list[int]:
    """Number of episodes from each part: an equal share at least, and the remainder in order.

    >>> quotas([50, 500, 500, 500, 500], 1000)
    [50, 450, 250, 250, 0]

    Args:
        sure: how many parts are sure of a share.
    """
    share = limit // max(1, min(sure, len(sizes)))
    given = [min(size, share) for size in sizes[:sure]] + [0] * len(sizes[sure:])
    left = limit - sum(given)
    for place, size in enumerate(sizes):
        more = min(size - given[place], left)
        given[place] += more
        left -= more
    return given


def whole_groups(groups: Sequence[Sequence[Member]], quota: int) -> list[Member]:
    """Members of groups that fit into the quota, sorted; a group alone that is larger is cut."""
    chosen: list[Member] = []
    for place in spread_order(len(groups)):
        room = quota - len(chosen)
        if len(groups[place]) <= room or not chosen:
            chosen += groups[place][:room]
    return sorted(chosen)


def spans(numbers: Iterable[int]) -> str:
    """Numbers as text, neighbours as one span.

    >>> spans([1, 2, 3, 7, 9])
    '1 to 3, 7, 9'
    """
    groups: list[list[int]] = []
    for value in sorted(numbers):
        if groups and value == groups[-1][1] + 1:
            groups[-1][1] = value
        else:
            groups.append([value, value])
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in groups)
