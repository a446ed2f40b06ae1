"""Plans of houses: rooms on a grid, joined by ways."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import networkx as nx

from manyturn.envs.adventure.object_names import DIRECTIONS, ROOMS
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import is_held_out

_NAMES = tuple(DIRECTIONS)


class Way(NamedTuple):
    """A passage from room ``a`` to room ``b``, which lies in a direction of it."""

    a: int
    direction: str
    b: int

    @property
    def back(self) -> str:
        """The direction from ``b`` to ``a``."""
        return _NAMES[(_NAMES.index(self.direction) + 2) % 4]


def draw_ways(draws: Draws, rooms: int, loops: int = 0) -> list[Way]:
    """Ways that join all rooms: a random tree on a grid, and further ways between neighbours.

    Args:
        rooms: how many; room 0 is the first.
        loops: of ten pairs of neighbours that the tree does not join, how many get a way.
    """
    cells = {(0, 0): 0}
    spots = [(0, 0)]
    ways = []
    while len(spots) < rooms:
        a = draws.below(len(spots))
        direction = draws.pick(_NAMES)
        spot = _next(spots[a], direction)
        if spot not in cells:
            ways.append(Way(a, direction, len(spots)))
            cells[spot] = len(spots)
            spots.append(spot)
    joined = {frozenset((way.a, way.b)) for way in ways}
    for a, spot in enumerate(spots):
        for direction in ("east", "south"):
            b = cells.get(_next(spot, direction))
            if b is not None and frozenset((a, b)) not in joined and draws.below(10) < loops:
                ways.append(Way(a, direction, b))
    return ways


def graph_of(ways: list[Way]) -> nx.Graph:
    """The rooms as nodes and the ways as edges."""
    graph = nx.Graph()
    graph.add_node(0)
    graph.add_edges_from((way.a, way.b) for way in ways)
    return graph


def bridges(ways: list[Way]) -> list[int]:
    """Numbers of the ways that no other way replaces: a lock on one of them divides the house."""
    cut = {frozenset(edge) for edge in nx.bridges(graph_of(ways))}
    return [number for number, way in enumerate(ways) if frozenset((way.a, way.b)) in cut]


is_unseen = cache(is_held_out)


def name_rooms(draws: Draws, ways: list[Way], size: int, unseen: bool, first: Sequence[str] = ()) -> list[str]:
    """Names for rooms, so that the plan with names is one of those kept for ``test_unseen``, or none of them.

    Args:
        first: names of the first rooms. A plan of a single room belongs to all splits.
    """
    others = tuple(name for name in ROOMS if name not in first)
    while True:
        names = [*first, *sample(draws, others, size - len(first))]
        plan = [f"{names[a]} {direction} {names[b]}" for a, direction, b in ways]
        if size == 1 or is_unseen("plan", *plan) == unseen:
            return names


def sample(draws: Draws, items: Sequence[str], size: int) -> list[str]:
    """Different items in random order."""
    pool = list(items)
    return [pool.pop(draws.below(len(pool))) for _ in range(size)]


def _next(spot: tuple[int, int], direction: str) -> tuple[int, int]:
    step = DIRECTIONS[direction]
    return spot[0] + step[0], spot[1] + step[1]
