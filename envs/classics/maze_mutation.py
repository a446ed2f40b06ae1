"""Larger and smaller mazes out of a maze: a room is added to its tree, or a dead end is taken away.

Everything else stays where it is, so that a policy that knows the first maze knows a part of the second.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_STEPS = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
_BACK = {"north": "south", "east": "west", "south": "north", "west": "east"}
_FEWEST = 3  # rooms: for start, key and gold


def larger_maze(params: Mapping[str, Any], colours: Sequence[str], rng: np.random.Generator) -> dict[str, Any] | None:
    """The maze with one more room, which opens off any room but the gold's; None where no colour is left for it.

    Args:
        params: of a task of Maze.
        colours: that a room may have.
    """
    free_colours = [colour for colour in colours if colour not in params["colours"]]
    cells = _cells(params["exits"])
    spots = [
        (room, way)
        for room, (x, y) in enumerate(cells)
        for way, (dx, dy) in _STEPS.items()
        if room != params["gold"] and (x + dx, y + dy) not in cells
    ]
    if not free_colours or not spots:
        return None
    room, way = spots[int(rng.integers(len(spots)))]
    exits = [dict(ways) for ways in params["exits"]]
    exits[room][way] = len(exits)
    exits.append({_BACK[way]: room})
    colour = free_colours[int(rng.integers(len(free_colours)))]
    return {**params, "exits": exits, "colours": [*params["colours"], colour]}


def smaller_maze(params: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any] | None:
    """The maze without one of its dead ends; None where each holds start, key or gold."""
    held = {params["gold"], params["key"], params["start"]}
    ends = [room for room, ways in enumerate(params["exits"]) if len(ways) == 1 and room not in held]
    if not ends or len(params["exits"]) <= _FEWEST:
        return None
    gone = ends[int(rng.integers(len(ends)))]

    def number(room: int) -> int:
        return room - (room > gone)

    exits = [
        {way: number(there) for way, there in ways.items() if there != gone}
        for room, ways in enumerate(params["exits"])
        if room != gone
    ]
    colours = [colour for room, colour in enumerate(params["colours"]) if room != gone]
    places = {name: number(params[name]) for name in ("start", "key", "gold")}
    return {**params, "exits": exits, "colours": colours, **places}


def _cells(exits: Sequence[Mapping[str, int]]) -> list[tuple[int, int]]:
    """The place of each room on the grid."""
    cells, queue = {0: (0, 0)}, [0]
    for room in queue:
        x, y = cells[room]
        for way, there in exits[room].items():
            if there not in cells:
                cells[there] = (x + _STEPS[way][0], y + _STEPS[way][1])
                queue.append(there)
    return [cells[room] for room in range(len(exits))]
