"""Laboratories from nothing but a number: every task can be solved, and no problem is in two splits.

Nothing is locked, and all that a goal needs exists. Names and apparatus are drawn until the content hash falls into the
split. Plans of rooms in ``test_unseen``, and the objects that its goals are about, occur in no other split.
"""

from dataclasses import dataclass
from typing import Any

from manyturn.envs.adventure.layout import is_unseen, sample
from manyturn.envs.adventure.object_names import COLOURS, MATERIALS, SUPPORTS
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, params_of_split
from manyturn.envs.laboratory.task_objects import APPARATUS, Stock

ROOMS = (
    *("archive", "boiler room", "canteen", "cellar", "classroom", "cloakroom", "cold room", "corridor", "courtyard"),
    *("foundry", "greenhouse", "hall", "kitchen", "laundry", "library", "office", "pantry", "storeroom", "studio"),
    *("washroom", "workshop"),
)
_TABLES = [f"{material} {support}" for material in MATERIALS for support in SUPPORTS]
_CABINETS = [f"{colour} {name}" for colour in COLOURS for name in ("cabinet", "chest", "crate", "cupboard", "locker")]
SIZES = {"train": 1_000_000, "validation": 100_000, "test": 100_000, "test_unseen": 100_000}
_NEXT = 3  # doors of a room, at most


@dataclass(frozen=True)
class LaboratoryLevel:
    """Size of the task.

    Args:
        rooms: how many.
        kinds: of tasks, all equally frequent.
        others: things that the goal does not need, about.
        closed: of ten doors, how many are closed; of ten tables, how many are cabinets.
        turns: that an episode may take.
    """

    rooms: int
    kinds: tuple[str, ...]
    others: int
    closed: int
    turns: int


LEVELS = {
    "tiny": LaboratoryLevel(1, ("change", "find"), 4, 0, 15),
    "small": LaboratoryLevel(2, tuple(APPARATUS), 3, 3, 30),
    "medium": LaboratoryLevel(4, tuple(APPARATUS), 4, 5, 50),
    "long": LaboratoryLevel(12, ("change", "conductivity", "thermometer", "mix", "grow"), 6, 8, 100),
}


class LaboratoryTasks(GeneratedTasks):
    """The tasks of one split and size."""

    def __init__(self, split: str, name: str, level: LaboratoryLevel):
        prefix = f"{split}/{name}/"
        super().__init__(lambda number: _make(prefix, split, name, level, number), SIZES[split], prefix)


def _make(prefix: str, split: str, name: str, level: LaboratoryLevel, number: int) -> Task:
    draws, unseen = Draws("laboratory", prefix, number), split == "test_unseen"
    kind = draws.pick(level.kinds)

    def draw() -> dict[str, Any]:
        rooms, doors = _rooms(draws, level, unseen)
        stock = Stock(draws, level.rooms, level.others, unseen=unseen)
        _furnish(stock, level)
        goal = APPARATUS[kind](stock)
        params = {"rooms": "|".join(rooms), "doors": "|".join(doors), "things": "|".join(stock.lines)}
        return params | {"start": draws.below(level.rooms), "kind": kind, "goal": goal}

    return Task(f"{prefix}{number}", split, params_of_split(draw, split), name, (kind,))


def _rooms(draws: Draws, level: LaboratoryLevel, unseen: bool) -> tuple[list[str], list[str]]:
    """Names of rooms, and the doors of a tree that joins them."""
    counts, pairs = [0] * level.rooms, list[tuple[int, int]]()
    for room in range(1, level.rooms):
        near = draws.pick([other for other in range(room) if counts[other] < _NEXT])
        counts[near] += 1
        counts[room] += 1
        pairs.append((near, room))
    while True:
        names = sample(draws, ROOMS, level.rooms)
        plan = sorted("-".join(sorted((names[a], names[b]))) for a, b in pairs)
        if level.rooms == 1 or is_unseen("laboratory", *plan) == unseen:
            break
    states = ["closed" if draws.below(10) < level.closed else "open" for _ in pairs]
    return names, [f"{a} {b} {state}" for (a, b), state in zip(pairs, states, strict=True)]


def _furnish(stock: Stock, level: LaboratoryLevel) -> None:
    """Tables and cabinets, two in each room of the smallest and the largest laboratories, else one."""
    places = [*range(level.rooms)] * (1 if 2 < level.rooms < 8 else 2)
    tables = sample(stock.draws, _TABLES, len(places))
    cabinets = sample(stock.draws, _CABINETS, len(places))
    for room, table, cabinet in zip(places, tables, cabinets, strict=True):
        is_cabinet = stock.draws.below(10) < level.closed
        stock.shelves.append(stock.add("cabinet" if is_cabinet else "surface", cabinet if is_cabinet else table, room))
