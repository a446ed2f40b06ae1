"""Quests by backward chaining: the commands that reach a goal, with full knowledge of the house."""

from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from manyturn.envs.adventure.house import House
from manyturn.envs.adventure.world import World


class Circular(ValueError):
    """A key lies behind its own lock: the house cannot be solved."""


class Step(NamedTuple):
    """One command of a quest.

    Attributes:
        part: ``visit``, ``unlock``, ``open``, ``take`` or ``put``.
        subject: the room, barrier or thing.
        command: as the agent types it.
    """

    part: str
    subject: int
    command: str


class Quest:
    """The way to a goal, made as it is chained; it starts where the house says.

    Each method adds the commands that its aim needs, those for keys first. No lock is opened without need, so there is
    no shorter way to the last of the aims unless their order could be changed.

    Attributes:
        steps: the commands.
    """

    def __init__(self, house: House):
        self.house, self.room = house, house.start
        self.steps: list[Step] = []
        self._holds: set[int] = set()
        self._pending: set[int] = set()
        self._opened, self._locked = house.opened, house.locked

    def reach(self, room: int) -> None:
        """Go to a room. Raises Circular."""
        while self.room != room:
            path = nx.shortest_path(self.house.graph, self.room, room)
            exits = [self._exit(a, b) for a, b in pairwise(path)]
            key = next((key for _, barrier in exits if (key := self._key_of(barrier)) >= 0), None)
            if key is not None:
                self.hold(key)
                continue
            for there, (direction, barrier) in zip(path[1:], exits, strict=True):
                self._pass(barrier)
                self.steps.append(Step("visit", there, f"go {direction}"))
            self.room = room

    def hold(self, thing: int) -> None:
        """Come to carry a thing. Raises Circular."""
        if thing in self._holds:
            return
        if thing in self._pending:
            raise Circular(self.house.things[thing])
        self._pending.add(thing)
        place = self.house.places[thing]
        self.open_up(place)
        where = f" from {self.house.furniture[place - len(self.house.rooms)]}" if place >= len(self.house.rooms) else ""
        self.steps.append(Step("take", thing, f"take {self.house.things[thing]}{where}"))
        self._holds.add(thing)

    def open_up(self, place: int) -> None:
        """Stand before a place that is open. Raises Circular."""
        lid = self.house.lid_of(place)
        if (key := self._key_of(lid)) >= 0:
            self.hold(key)
        self.reach(self.house.room_of(place))
        self._pass(lid)

    def put(self, thing: int, piece: int) -> None:
        """Put a thing on or into a piece of furniture. Raises Circular."""
        self.hold(thing)
        self.open_up(len(self.house.rooms) + piece)
        verb, word = ("put", "on") if self.house.lids[piece] < 0 else ("insert", "into")
        command = f"{verb} {self.house.things[thing]} {word} {self.house.furniture[piece]}"
        self.steps.append(Step("put", thing, command))

    def _key_of(self, barrier: int) -> int:
        """The key that is still needed for a barrier; -1 for none."""
        if barrier < 0 or not self._locked >> barrier & 1:
            return -1
        key = self.house.keys[barrier]
        return -1 if key in self._holds else key

    def _exit(self, room: int, there: int) -> tuple[str, int]:
        """Direction and barrier between neighbours."""
        return next((way, barrier) for way, (end, barrier) in self.house.exits[room].items() if end == there)

    def _pass(self, barrier: int) -> None:
        if barrier < 0:
            return
        name, bit = self.house.barriers[barrier], 1 << barrier
        if self._locked & bit:
            key = self.house.things[self.house.keys[barrier]]
            self.steps.append(Step("unlock", barrier, f"unlock {name} with {key}"))
            self._locked &= ~bit
        if not self._opened & bit:
            self.steps.append(Step("open", barrier, f"open {name}"))
            self._opened |= bit


def milestones(steps: list[Step], start: int) -> list[Step]:
    """Milestones that the steps reach, each once: rooms seen, locks and lids opened, things taken and put."""
    first: dict[tuple[str, int], Step] = {("visit", start): Step("visit", start, "")}
    for step in steps:
        first.setdefault((step.part, step.subject), step)
    return list(first.values())[1:]


def holds(world: World, step: Step) -> bool:
    """True if a milestone other than ``put`` is reached in this state."""
    match step.part:
        case "visit":
            return bool(world.visited >> step.subject & 1)
        case "unlock":
            return not world.locked >> step.subject & 1
        case "open":
            return bool(world.opened >> step.subject & 1)
        case _:
            return world.places[step.subject] < 0
