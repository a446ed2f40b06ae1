"""A laboratory as its task's parameters describe it: rooms, doors, fixtures and things. It never changes."""

from collections.abc import Callable, Mapping
from typing import Any

CARRIED = -1
"""Place of a thing that the agent carries. Other places: rooms 0..R-1, then things, R for the first of them."""
GONE = -2
"""Place of a thing that does not exist any more."""
DEVICES = {
    "warming plate": (60, ""),
    "water bath": (80, ""),
    "hot plate": (200, ""),
    "oven": (260, "closed"),
    "gas burner": (600, ""),
    "kiln": (1300, "closed"),
    "furnace": (1800, "closed"),
    "fridge": (4, "closed"),
    "freezer": (-25, "closed"),
    "deep freezer": (-75, "closed"),
    "cryostat": (-180, "closed"),
    "incubator": (38, "closed"),
}
"""Device -> its degrees Celsius when it is on, and the state of its lid at the start; empty without a lid."""
FIXED = ("surface", "box", "cabinet", "device", "pot")
PARTS = ("battery", "bulb", "item")
"""Sorts of things that can be joined to a circuit."""
SITUATIONS = 400
"""Situations of a task that are remembered, so that long studies of one task do not fill the memory."""
Operation = tuple[Callable[..., str], int, int]


class Plan:
    """The laboratory that the parameters of a task describe.

    Args:
        params: ``rooms`` (names joined by ``|``), ``doors`` (``a b state``), ``things`` (``sort:name:place:value``),
            ``start``, a room's number, ``kind`` and ``goal``. A value is the temperature of a substance, the state of
            a cabinet's lid or of a device's switch, and whether an item conducts.

    Attributes:
        exits: for each room name of the next one -> (its number, number of the door).
        doors: mask of those open at the start.
        sorts, names, places, values: of the things.
        lids: mask of the things with a lid; ``opened`` those open at the start.
        on: mask of devices that are on at the start.
        substances, growing: numbers of the things that have a temperature, and of those that have an age.
    """

    def __init__(self, params: Mapping[str, Any]):
        self.rooms: tuple[str, ...] = tuple(params["rooms"].split("|"))
        self.start: int = params["start"]
        self.kind: str = params["kind"]
        self.goal: str = params["goal"]
        self.exits: list[dict[str, tuple[int, int]]] = [{} for _ in self.rooms]
        self.doors = 0
        for number, text in enumerate(filter(None, params["doors"].split("|"))):
            a, b, state = text.split()
            self.exits[int(a)][self.rooms[int(b)]] = (int(b), number)
            self.exits[int(b)][self.rooms[int(a)]] = (int(a), number)
            self.doors |= (state == "open") << number
        self.sorts: list[str] = []
        self.names: list[str] = []
        self.places: list[int] = []
        self.values: list[int] = []
        self.lids = self.opened = self.on = 0
        for text in params["things"].split("|"):
            self._add(*text.split(":"))
        self.index = {name: number for number, name in enumerate(self.names)}
        self.substances = tuple(self.of_sort("substance"))
        self.growing = tuple(self.of_sort("growing"))
        self.commands: dict[Any, tuple[dict[str, Operation], list[str]]] = {}
        """Commands of a situation, shared by the episodes of a task; at most ``SITUATIONS``."""
        self.views: dict[Any, str] = {}
        """Descriptions of rooms, likewise."""

    def of_sort(self, sort: str) -> list[int]:
        """Numbers of the things of a sort."""
        return [number for number, other in enumerate(self.sorts) if other == sort]

    def inside(self, thing: int) -> int:
        """Place that things in or on a thing have."""
        return len(self.rooms) + thing

    def degrees(self, device: int) -> int:
        """Temperature of a device that is on."""
        return DEVICES[self.names[device]][0]

    def _add(self, sort: str, name: str, place: str, value: str) -> None:
        bit, number = 1 << len(self.sorts), int(value)
        lid = sort == "cabinet" or (sort == "device" and bool(DEVICES[name][1]))
        self.lids |= bit * lid
        self.opened |= bit * (sort == "cabinet" and number)
        self.on |= bit * (sort == "device" and number)
        self.sorts.append(sort)
        self.names.append(name)
        self.places.append(int(place))
        self.values.append(number)
