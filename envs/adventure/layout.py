"""Plans of houses: rooms on a grid, joined by ways."""

from typing import NamedTuple

import networkx as nx

from manyturn.envs.adventure.nouns import DIRECTIONS
from manyturn.envs.contract.stable_random import Draws

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


def _next(spot: tuple[int, int], direction: str) -> tuple[int, int]:
    step = DIRECTIONS[direction]
    return spot[0] + step[0], spot[1] + step[1]
