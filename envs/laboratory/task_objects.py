"""Apparatus of each kind of task: what its goal needs, and what only looks as if it did."""

from collections.abc import Callable, Sequence

from manyturn.envs.adventure.layout import is_unseen, sample
from manyturn.envs.adventure.object_names import COLOURS
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.laboratory.layout import DEVICES
from manyturn.envs.laboratory.object_types import ANIMALS, BIRDS, CATEGORIES, CROPS, MATERIALS, SHAPES
from manyturn.envs.laboratory.substances import AIMS, PRODUCTS, ROOM_DEGREES, SUBSTANCES, state_of, suits

VESSELS = ("bottle", "jug", "cup", "bowl", "beaker", "flask", "jar", "mug", "pan", "dish", "crucible", "bucket")
VESSEL_MATERIALS = ("steel", "stone", "ceramic", "iron", "porcelain", "clay")
_OBJECTS = ("candle", "coin", "comb", "cork", "die", "feather", "glove", "marble ball", "rope", "stamp", "whistle")
_LIMITS = (-10, 0, 10, 30, 40, 50, 70)
_AIMS = [
    (name, aim)
    for name in SUBSTANCES
    for aim in AIMS
    if state_of(name, ROOM_DEGREES) == AIMS[aim][0] and any(suits(aim, name, heat) for heat, _ in DEVICES.values())
]
_TARGETS = [(category, name) for category, names in CATEGORIES.items() for name in names]


class Stock:
    """Things of a task while it is made.

    Args:
        draws: its random draws.
        rooms: how many.
        unseen: the structure of the task belongs to ``test_unseen``.
        others: things that the goal does not need, about.
    """

    def __init__(self, draws: Draws, rooms: int, others: int, *, unseen: bool):
        self.draws, self.rooms, self.others, self.unseen = draws, rooms, others, unseen
        self.lines: list[str] = []
        self.shelves: list[int] = []
        materials = _shuffled(draws, VESSEL_MATERIALS * 2)
        self._vessels = [f"{m} {v}" for m, v in zip(materials, _shuffled(draws, VESSELS), strict=True)]
        self.colours = _shuffled(draws, COLOURS)

    def add(self, sort: str, name: str, place: int, value: int = 0) -> int:
        """A thing at a place; the place of things in it."""
        self.lines.append(f"{sort}:{name}:{place}:{value}")
        return self.rooms + len(self.lines) - 1

    def store(self, sort: str, name: str, value: int = 0) -> int:
        """A thing on a table or in a cabinet."""
        return self.add(sort, name, self.draws.pick(self.shelves), value)

    def somewhere(self, sort: str, name: str, value: int = 0) -> int:
        """A fixture in one of the rooms."""
        return self.add(sort, name, self.draws.below(self.rooms), value)

    def portion(self, name: str, place: int | None = None, degrees: int | None = None) -> int:
        """A substance in a vessel of its own, which stands on a table unless a place is named."""
        place = self.draws.pick(self.shelves) if place is None else place
        vessel = self.add("vessel", self._vessels.pop(), place)
        return self.add("substance", name, vessel, self.draws.between(18, 22) if degrees is None else degrees)

    def belongs(self, *structure: str) -> bool:
        """True if a structure is one of those that the split has."""
        return is_unseen(*structure) == self.unseen

    def boxes(self, count: int) -> list[str]:
        """Names of boxes in one room."""
        room, names = self.draws.below(self.rooms), [f"{self.colours.pop()} box" for _ in range(count)]
        for name in names:
            self.add("box", name, room)
        return names


def _shuffled(draws: Draws, items: Sequence[str]) -> list[str]:
    return sample(draws, items, len(items))


def change(stock: Stock) -> str:
    """Devices of which one suits, and substances of which one is to change."""
    draws = stock.draws
    while True:
        name, aim = draws.pick(_AIMS)
        if stock.belongs("change", name, aim):
            break
    devices = [other for other in DEVICES if other != "incubator"]
    device = draws.pick([other for other in devices if suits(aim, name, DEVICES[other][0])])
    devices.remove(device)
    for other in _shuffled(draws, (device, *sample(draws, devices, 1 + (stock.rooms > 2)))):
        stock.somewhere("device", other)
    others = sample(draws, [other for other in SUBSTANCES if other != name], 2)
    for other in _shuffled(draws, (name, *others)):
        stock.portion(other)
    things(stock, (), without=())
    return f"{name}/{aim}"


def find(stock: Stock) -> str:
    """One thing of a category among things of others."""
    while True:
        category, name = stock.draws.pick(_TARGETS)
        if stock.belongs("find", category, name):
            break
    things(stock, (name,), without=(category,), least=5)
    (box,) = stock.boxes(1)
    return f"{category}/{box}"


def things(stock: Stock, needed: Sequence[str], without: Sequence[str], least: int = 2) -> None:
    """Things that the goal needs, among others that are not of some categories."""
    names = [*_OBJECTS, *(n for category, names in CATEGORIES.items() if category not in without for n in names)]
    for name in _shuffled(stock.draws, (*needed, *sample(stock.draws, names, max(stock.others, least)))):
        stock.store("thing", name)


def lifespan(stock: Stock) -> str:
    """Animals with different life spans; their set is a structure."""
    size = 3 if stock.rooms < 4 else 4
    while True:
        names = sample(stock.draws, tuple(ANIMALS), size)
        if stock.belongs("lifespan", *sorted(names)):
            break
    things(stock, names, without=("animal",), least=3)
    return str(size)


def conductivity(stock: Stock) -> str:
    """Battery, light bulb and items, of which some show their material and some do not."""
    draws = stock.draws
    items: dict[str, int] = {}
    target = ""
    while len(items) < 3:
        material = draws.pick((*MATERIALS, *stock.colours[:18]))
        name = f"{material} {draws.pick(SHAPES)}"
        if name not in items and (items or stock.belongs("conductivity", name)):
            target = target or name
            items[name] = MATERIALS.get(material, draws.below(2))
    things(stock, (), without=())
    stock.store("battery", "battery")
    stock.store("bulb", "light bulb")
    for name in _shuffled(draws, tuple(items)):
        stock.store("item", name, items[name])
    del stock.colours[:18]
    return "/".join((target, *stock.boxes(2)))


def thermometer(stock: Stock) -> str:
    """A thermometer, and substances of which some stand in devices that are on."""
    draws = stock.draws
    limit = draws.pick(_LIMITS)
    while True:
        name = draws.pick(tuple(SUBSTANCES))
        if stock.belongs("thermometer", name):
            break
    devices = sample(draws, ("warming plate", "water bath", "fridge", "freezer"), 2)
    places = {other: stock.somewhere("device", other, 1) for other in devices}
    others = sample(draws, [other for other in SUBSTANCES if other != name], 1 + draws.below(2))
    for other in _shuffled(draws, (name, *others)):
        device = draws.pick(devices)
        place = places.pop(device, None)
        stock.portion(other, place, draws.between(-30, 90) if place is None else DEVICES[device][0])
    stock.store("thermometer", "thermometer")
    things(stock, (), without=())
    return "/".join((name, str(limit), *stock.boxes(2)))


def mix(stock: Stock) -> str:
    """Ingredients, each in a vessel, a recipe, and substances that spoil the product."""
    while True:
        product = stock.draws.pick(tuple(PRODUCTS))
        if stock.belongs("mix", product):
            break
    names = PRODUCTS[product]
    others = sorted({name for ingredients in PRODUCTS.values() for name in ingredients} - set(names))
    for name in _shuffled(stock.draws, (*names, *sample(stock.draws, others, 1 + stock.draws.below(2)))):
        stock.portion(name)
    stock.store("note", stock.draws.pick(("recipe", "notebook", "handwritten note", "recipe card")))
    things(stock, (), without=())
    return product


def grow(stock: Stock) -> str:
    """A seed, a pot and water; or an egg and an incubator."""
    lives = CROPS if stock.draws.below(5) < 3 else BIRDS
    while True:
        name = stock.draws.pick(tuple(lives))
        if stock.belongs("grow", name):
            break
    stock.store("growing", name)
    if lives is CROPS:
        stock.somewhere("pot", f"{stock.colours.pop()} pot")
        stock.portion("water")
    else:
        stock.somewhere("device", "incubator")
    stock.portion(stock.draws.pick([other for other in SUBSTANCES if other != "water"]))
    things(stock, (), without=())
    return name


APPARATUS: dict[str, Callable[[Stock], str]] = {
    "change": change,
    "find": find,
    "lifespan": lifespan,
    "conductivity": conductivity,
    "thermometer": thermometer,
    "mix": mix,
    "grow": grow,
}
"""Kind of task -> function that adds its things and returns the goal."""
