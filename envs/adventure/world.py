"""The state of an episode in a house, the commands that exist in it, and what they answer."""

import json
from collections.abc import Callable
from typing import Any

from manyturn.envs.adventure.house import CARRIED, House
from manyturn.envs.adventure.object_names import indefinite, listing, sentence

Operation = tuple[Callable[..., str], Any, Any]
REFUSAL = "You cannot do that."


class World:
    """Rooms, doors, furniture and things as they are now. ``act`` changes them; everything else only reads.

    Attributes:
        room: number of the agent's room.
        places: of the things, see ``house.CARRIED``.
        opened, locked: masks of barriers.
        visited: mask of the rooms where the agent has been.
        shown: mask of the pieces of furniture that the agent has seen open.
    """

    def __init__(self, house: House):
        self.house = house
        self.room = house.start
        self.places = list(house.places)
        self.opened, self.locked = house.opened, house.locked
        self.visited = self.shown = 0
        self._enter()

    # ---- what the environment asks --------------------------------------------------------------------------

    def act(self, command: str) -> tuple[str, bool]:
        """Take one command: the answer, and whether the command exists here."""
        command = command.strip()
        operation = self.commands()[0].get(command)
        if operation is None:
            return self._reason(command), False
        return operation[0](self, operation[1], operation[2]), True

    def commands(self) -> tuple[dict[str, Operation], list[str]]:
        """Commands that exist here: command -> operation, and the sorted list, which is not to be changed."""
        key = self.key()
        entry = self.house.commands.get(key)
        if entry is None:
            operations: dict[str, Operation] = {}
            self.offer(operations)
            entry = self.house.commands[key] = operations, sorted(operations)
        return entry

    def key(self) -> tuple[int, ...]:
        """The situation, without what the agent remembers."""
        return (self.room, self.opened, self.locked, *self.places)

    def sees(self, thing: int) -> bool:
        """True if the agent has been shown where a thing is, or carries it."""
        place = self.places[thing]
        if place == CARRIED:
            return True
        if place < 0 or not self.visited >> self.house.room_of(place) & 1:
            return False
        return self.house.lid_of(place) < 0 or bool(self.shown >> place - len(self.house.rooms) & 1)

    def describe(self) -> str:
        """The room as the agent sees it."""
        key = self.key()
        view = self.house.views.get(key)
        if view is None:
            view = self.house.views[key] = " ".join(self._sentences())
        return view

    def save(self) -> bytes:
        """The state as compact JSON."""
        return json.dumps([self.room, self.opened, self.locked, self.visited, self.shown, self.places]).encode()

    def load(self, data: bytes) -> None:
        """Inverse of ``save`` in the same house."""
        self.room, self.opened, self.locked, self.visited, self.shown, self.places = json.loads(data)

    def reachable(self) -> dict[int, str]:
        """Places that the agent can take from and put things to, with their names; the floor has none."""
        house = self.house
        places = {self.room: ""}
        for piece in house.here[self.room]:
            lid = house.lids[piece]
            if lid < 0 or self.opened >> lid & 1:
                places[len(house.rooms) + piece] = house.furniture[piece]
        return places

    def memory(self) -> tuple[int, ...]:
        """The part of what the agent has seen that matters for its next move."""
        return self.visited, self.shown

    # ---- commands that exist here ---------------------------------------------------------------------------

    def offer(self, into: dict[str, Operation]) -> None:
        """Add the commands that exist in this situation."""
        house = self.house
        into["look"] = (World._look, 0, 0)
        into["inventory"] = (World._inventory, 0, 0)
        barriers = [house.lids[piece] for piece in house.here[self.room] if house.lids[piece] >= 0]
        for direction, (room, barrier) in house.exits[self.room].items():
            if barrier >= 0:
                barriers.append(barrier)
            if barrier < 0 or self.opened >> barrier & 1:
                into[f"go {direction}"] = (World._go, room, 0)
        for barrier in barriers:
            self._offer_barrier(barrier, into)
        self._offer_places(into)

    def _offer_barrier(self, barrier: int, into: dict[str, Operation]) -> None:
        name, key = self.house.barriers[barrier], self.house.keys[barrier]
        has_key = key >= 0 and self.places[key] == CARRIED
        if self.locked >> barrier & 1:
            if has_key:
                into[f"unlock {name} with {self.house.things[key]}"] = (World._unlock, barrier, key)
        elif self.opened >> barrier & 1:
            into[f"close {name}"] = (World._close, barrier, 0)
        else:
            into[f"open {name}"] = (World._open, barrier, 0)
            if has_key:
                into[f"lock {name} with {self.house.things[key]}"] = (World._lock, barrier, key)

    def _offer_places(self, into: dict[str, Operation]) -> None:
        """Commands that move things between places that can be reached here."""
        house, at = self.house, self.reachable()
        for thing, place in enumerate(self.places):
            name = house.things[thing]
            if place == CARRIED:
                for target, where in at.items():
                    verb = "insert" if house.lid_of(target) >= 0 else "put" if where else "drop"
                    word = {"insert": f" into {where}", "put": f" on {where}", "drop": ""}[verb]
                    into[f"{verb} {name}{word}"] = (World._put, thing, target)
            elif place in at:
                where = f" from {at[place]}" if at[place] else ""
                into[f"take {name}{where}"] = (World._take, thing, place)

    # ---- operations: change the state and answer ------------------------------------------------------------

    def _enter(self) -> None:
        self.visited |= 1 << self.room
        for piece in self.house.here[self.room]:
            lid = self.house.lids[piece]
            if lid < 0 or self.opened >> lid & 1:
                self.shown |= 1 << piece

    def _go(self, room: int, _: int) -> str:
        self.room = room
        self._enter()
        return self.describe()

    def _open(self, barrier: int, _: int) -> str:
        self.opened |= 1 << barrier
        self._enter()
        name = self.house.barriers[barrier]
        if barrier in self.house.lids:
            place = len(self.house.rooms) + self.house.lids.index(barrier)
            return f"You open the {name}. It holds {self._contents(place) or 'nothing'}."
        return f"You open the {name}."

    def _close(self, barrier: int, _: int) -> str:
        self.opened &= ~(1 << barrier)
        return f"You close the {self.house.barriers[barrier]}."

    def _unlock(self, barrier: int, key: int) -> str:
        self.locked &= ~(1 << barrier)
        return f"You unlock the {self.house.barriers[barrier]} with the {self.house.things[key]}."

    def _lock(self, barrier: int, key: int) -> str:
        self.locked |= 1 << barrier
        return f"You lock the {self.house.barriers[barrier]} with the {self.house.things[key]}."

    def _take(self, thing: int, place: int) -> str:
        self.places[thing] = CARRIED
        where = (
            f" from the {self.house.furniture[place - len(self.house.rooms)]}" if place >= len(self.house.rooms) else ""
        )
        return f"You take the {self.house.things[thing]}{where}."

    def _put(self, thing: int, place: int) -> str:
        self.places[thing] = place
        name = self.house.things[thing]
        if place < len(self.house.rooms):
            return f"You drop the {name}."
        where = "on" if self.house.lid_of(place) < 0 else "into"
        return f"You put the {name} {where} the {self.house.furniture[place - len(self.house.rooms)]}."

    def _inventory(self, _: int, __: int) -> str:
        return f"You carry {self._contents(CARRIED) or 'nothing'}."

    def _look(self, _: int, __: int) -> str:
        return self.describe()

    # ---- words ----------------------------------------------------------------------------------------------

    def noun(self, thing: int) -> str:
        """A thing with its article, as it looks now."""
        return indefinite(self.house.things[thing])

    def _contents(self, place: int) -> str:
        things = [self.noun(thing) for thing, where in enumerate(self.places) if where == place]
        return listing(things) if things else ""

    def _sentences(self) -> list[str]:
        house = self.house
        texts = [f"You are in the {house.rooms[self.room]}."]
        if house.here[self.room]:
            pieces = [self._piece(piece) for piece in house.here[self.room]]
            texts.append(f"You see {', and '.join([*filter(None, [', '.join(pieces[:-1])]), pieces[-1]])}.")
        texts += self.fittings()
        if floor := [self.noun(thing) for thing, place in enumerate(self.places) if place == self.room]:
            texts.append(sentence(f"{listing(floor)} {'lies' if len(floor) == 1 else 'lie'} on the floor"))
        ways = [f"{direction}{self._door(exit[1])}" for direction, exit in sorted(house.exits[self.room].items())]
        texts.append(f"Exits: {', '.join(ways) or 'none'}.")
        return texts

    def fittings(self) -> list[str]:
        """Sentences about what else belongs to the room."""
        return []

    def _piece(self, piece: int) -> str:
        """A piece of furniture, and what can be seen on or in it."""
        lid, name = self.house.lids[piece], self.house.furniture[piece]
        if lid >= 0 and not self.opened >> lid & 1:
            return f"a {self._state(lid)} {name}"
        contents = self._contents(len(self.house.rooms) + piece)
        if lid < 0:
            return f"{indefinite(name)} with {contents} on it" if contents else indefinite(name)
        return f"an open {name} with {contents} in it" if contents else f"an open, empty {name}"

    def _door(self, barrier: int) -> str:
        return f" ({self.house.barriers[barrier]}, {self._state(barrier)})" if barrier >= 0 else ""

    def _state(self, barrier: int) -> str:
        return "locked" if self.locked >> barrier & 1 else "open" if self.opened >> barrier & 1 else "closed"

    def _reason(self, command: str) -> str:
        """A refusal that says why, where a door or a lid is the reason."""
        verb, _, name = command.partition(" ")
        barrier = -1
        if verb == "go" and name in self.house.exits[self.room]:
            barrier = self.house.exits[self.room][name][1]
        elif verb == "open" and name in self.house.barriers:
            barrier = self.house.barriers.index(name)
            barrier = barrier if self.room in self.house.sides[barrier] else -1
        return f"The {self.house.barriers[barrier]} is {self._state(barrier)}." if barrier >= 0 else REFUSAL
