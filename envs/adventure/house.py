"""A house as its task's parameters describe it: rooms, doors, furniture, things. It never changes."""

from collections.abc import Mapping
from typing import Any

import networkx as nx

from manyturn.envs.adventure.layout import Way, graph_of

CARRIED = -1
"""Place of a thing that the agent carries. Other places: rooms 0..R-1, then pieces of furniture R..R+F-1."""
GONE = -2
"""Place of a thing that does not exist any more."""


class House:
    """The house that the parameters of a task describe.

    A barrier is a door, or the lid of a container; barriers are numbered doors first. Masks have a bit for each.

    Args:
        params: ``rooms`` (names), ``ways`` (``a direction b``, and a door's name and state), ``furniture`` (room, name,
            and a container's state), ``things`` (name:place), each joined by ``|``; ``start``, a room's number. States
            are open, closed and locked. The key of a lock has its colour.

    Attributes:
        exits: for each room direction -> (room, barrier or -1).
        furniture, furniture_rooms: names and rooms.
        lids: for each piece of furniture its barrier; -1 for one to put things on.
        here: for each room its pieces of furniture.
        barriers, opened, locked: names, and states at the start.
        keys: for each barrier the thing that unlocks it; -1 if it has no lock.
        sides: for each barrier the rooms from which it can be reached.
        things, places: names, and places at the start.
    """

    def __init__(self, params: Mapping[str, Any]):
        self.rooms: tuple[str, ...] = tuple(params["rooms"].split("|"))
        self.start: int = params["start"]
        self.exits: list[dict[str, tuple[int, int]]] = [{} for _ in self.rooms]
        self.barriers: list[str] = []
        self.sides: list[tuple[int, ...]] = []
        self.opened = self.locked = 0
        self.ways: list[Way] = []
        for text in _parts(params["ways"]):
            a, direction, b, *door = text.split()
            way = Way(int(a), direction, int(b))
            barrier = self._barrier(" ".join(door[:-1]), door[-1], (way.a, way.b)) if door else -1
            self.exits[way.a][direction] = (way.b, barrier)
            self.exits[way.b][way.back] = (way.a, barrier)
            self.ways.append(way)
        self.furniture: list[str] = []
        self.furniture_rooms: list[int] = []
        self.lids: list[int] = []
        self.here: list[list[int]] = [[] for _ in self.rooms]
        for text in _parts(params["furniture"]):
            room, *words = text.split()
            lid = -1
            if words[-1] in ("open", "closed", "locked"):
                lid = self._barrier(" ".join(words[:-1]), words[-1], (int(room),))
                words.pop()
            self.here[int(room)].append(len(self.furniture))
            self.furniture.append(" ".join(words))
            self.furniture_rooms.append(int(room))
            self.lids.append(lid)
        things = [text.rpartition(":") for text in _parts(params["things"])]
        self.things: list[str] = [name for name, _, _ in things]
        self.places: list[int] = [int(place) for _, _, place in things]
        of_colour = {name.removesuffix(" key"): i for i, name in enumerate(self.things) if name.endswith(" key")}
        self.keys: list[int] = [of_colour.get(name.split()[0], -1) for name in self.barriers]
        self.graph: nx.Graph = graph_of(self.ways)
        self.commands: dict[Any, Any] = {}
        """Commands of a situation, shared by the episodes of a task: what ``World`` has computed once."""
        self.views: dict[Any, str] = {}
        """Descriptions of rooms, likewise."""

    def room_of(self, place: int) -> int:
        """The room of a place that is not ``CARRIED``."""
        return place if place < len(self.rooms) else self.furniture_rooms[place - len(self.rooms)]

    def lid_of(self, place: int) -> int:
        """The barrier in front of a place; -1 if there is none."""
        return self.lids[place - len(self.rooms)] if place >= len(self.rooms) else -1

    def _barrier(self, name: str, state: str, rooms: tuple[int, ...]) -> int:
        bit = 1 << len(self.barriers)
        self.opened |= bit * (state == "open")
        self.locked |= bit * (state == "locked")
        self.barriers.append(name)
        self.sides.append(rooms)
        return len(self.barriers) - 1


def _parts(text: str) -> list[str]:
    return text.split("|") if text else []
