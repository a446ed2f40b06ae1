"""Treasure hunts from nothing but a number: solvable by construction, no problem in two splits.

A sketch without names comes first: a plan, furniture, the treasure, and a quest that grows by closed doors, lids and
locks until it has its length. A lock is added with its key, and refused if the key ends behind it. Then names are drawn
until the content hash falls into the split. Plans with names, and pairs of treasure and target, of ``test_unseen``
occur in no other split.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from manyturn.envs.adventure.house import House
from manyturn.envs.adventure.layout import Way, bridges, draw_ways, is_unseen, name_rooms, sample
from manyturn.envs.adventure.object_names import COLOURS, CONTAINERS, MATERIALS, ROOMS, SUPPORTS, THINGS
from manyturn.envs.adventure.quest import Circular, Quest, Step
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import Direction, GeneratedTasks, Task, params_of_split

SIZES = {"train": 1_000_000, "validation": 100_000, "test": 100_000, "test_unseen": 100_000}
_ATTEMPTS = 10_000
_PADDINGS = 40
_LIDS = ("open", "closed", "locked")


@dataclass(frozen=True)
class TreasureLevel:
    """Size of the world.

    Args:
        rooms: how many.
        objects: things that can be carried, keys and treasure among them.
        quest: commands of the quest.
        turns: that an episode may take.
        plain: True for rooms only, without doors and furniture, and a coin as the treasure.
    """

    rooms: int
    objects: int
    quest: int
    turns: int
    plain: bool = False


LEVELS = {
    "w2-o3-q4": TreasureLevel(2, 3, 4, 12),
    "w4-o6-q8": TreasureLevel(4, 6, 8, 24),
    "w6-o9-q12": TreasureLevel(6, 9, 12, 36),
    "coin": TreasureLevel(12, 1, 7, 24, plain=True),
}


class TreasureTasks(GeneratedTasks):
    """The tasks of one split and size."""

    def __init__(self, split: str, name: str, level: TreasureLevel):
        prefix = f"{split}/{name}/"
        super().__init__(lambda number: _make(prefix, split, name, level, number), SIZES[split], prefix)


def check_level(level: TreasureLevel) -> str:
    """The name of a size, such as ``w3-o4-q6``. Raises ValueError if there are no tasks of it."""
    for what, size, most in (("rooms", level.rooms, len(ROOMS) // 2), ("objects", level.objects, len(THINGS) // 2)):
        if not 1 <= size <= most:
            raise ValueError(f"{what} must be from 1 to {most}, not {size}")
    name = f"{'coin-' if level.plain else ''}w{level.rooms}-o{level.objects}-q{level.quest}"
    if level.plain and level.objects > 1:
        raise ValueError("coin has one object, the coin: leave out objects, or choose another difficulty")
    if _sketch(Draws("size", name), level, 200) is None:
        raise ValueError(
            f"no quest of {level.quest} commands in {level.rooms} rooms with {level.objects} objects: "
            f"{'make it longer' if level.quest < 2 else 'give more rooms or objects, or a shorter quest'}"
        )
    return name


def _make(prefix: str, split: str, name: str, level: TreasureLevel, number: int) -> Task:
    draws = Draws("treasure", prefix, number)
    sketch = _sketch(draws, level, _ATTEMPTS)
    assert sketch is not None, f"no quest for {prefix}{number}"
    params = params_of_split(lambda: _named(draws, sketch, level, split == "test_unseen"), split)
    return Task(f"{prefix}{number}", split, params, name, (params["goal"].split()[0],))


def varied_hunt(task: Task, direction: Direction, draws: Draws) -> Task | None:
    """Another hunt of the next size: a quest of one command more or less, in a room more or less where need be.

    None where the quest cannot be shorter, or neither size has one.
    """
    house, step = House(task.params), 1 if direction == "harder" else -1
    rooms, objects = len(task.params["rooms"].split("|")), len(task.params["things"].split("|"))
    quest = len(quest_of(house, task.params["goal"]).steps) + step
    plain = not task.params["furniture"]
    for size in (rooms, rooms + step):
        if quest < 1 or not 1 <= size <= len(ROOMS) // 2:
            continue
        level = TreasureLevel(size, objects, quest, turns=3 * quest + 2 * size, plain=plain)
        if (sketch := _sketch(draws, level, _ATTEMPTS // 50)) is not None:
            params = params_of_split(partial(_named, draws, sketch, level, unseen=False), "train")
            return Task(task.id, "train", params, f"w{size}-o{objects}-q{quest}", (params["goal"].split()[0],))
    return None


def is_of_unseen(params: Mapping[str, Any]) -> bool:
    """True if the plan with its names, or the pair of treasure and target, is kept for ``test_unseen``."""
    names = params["rooms"].split("|")
    ways = [way.split()[:3] for way in params["ways"].split("|") if way]
    plan = [f"{names[int(a)]} {direction} {names[int(b)]}" for a, direction, b in ways]
    treasure, goal = params["things"].split("|")[0].rpartition(":")[0], params["goal"].split()
    target = params["furniture"].split("|")[int(goal[2])].split() if goal[0] == "put" else [""]
    noun = target[-2] if len(target) > 1 and target[-1] in _LIDS else target[-1]
    of_goal = bool(params["furniture"]) and is_unseen("goal", treasure, noun)
    return of_goal or (len(names) > 1 and is_unseen("plan", *plan))


# ---- a sketch: numbers instead of names ---------------------------------------------------------------------


@dataclass
class _Sketch:
    """A house without names.

    Attributes:
        doors: way -> state.
        furniture: room, and the state of its lid; "" for one without.
        places: of the things; the treasure is number 0.
        keys: for each thing the barrier that it unlocks: a way, or the number of ways and a piece of furniture.
        target: the piece of furniture that the treasure must be put on or into; -1 if taking it is enough.
    """

    ways: list[Way]
    rooms: int
    start: int
    doors: dict[int, str] = field(default_factory=dict)
    furniture: list[tuple[int, str]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    keys: dict[int, int] = field(default_factory=dict)
    target: int = -1

    def copy(self) -> "_Sketch":
        lists = (dict(self.doors), list(self.furniture), list(self.places), dict(self.keys))
        return _Sketch(self.ways, self.rooms, self.start, *lists, self.target)

    def params(self, names: "_Names") -> dict[str, Any]:
        """The task's parameters with names."""
        ways = []
        for number, (a, direction, b) in enumerate(self.ways):
            state = self.doors.get(number)
            ways.append(f"{a} {direction} {b}" + (f" {names.barriers[number]} door {state}" if state else ""))
        pieces = []
        for number, (room, state) in enumerate(self.furniture):
            if state:
                pieces.append(f"{room} {names.barriers[len(self.ways) + number]} {names.nouns[number]} {state}")
            else:
                pieces.append(f"{room} {names.nouns[number]}")
        things = []
        for thing, place in enumerate(self.places):
            barrier = self.keys.get(thing)
            name = names.things[thing] if barrier is None else f"{names.barriers[barrier]} key"
            things.append(f"{name}:{place}")
        return {
            "rooms": "|".join(names.rooms),
            "ways": "|".join(ways),
            "furniture": "|".join(pieces),
            "things": "|".join(things),
            "start": self.start,
            "goal": f"put 0 {self.target}" if self.target >= 0 else "take 0",
        }


@dataclass
class _Names:
    """Names of a sketch: of rooms, furniture and things in order, and the colour of each barrier."""

    rooms: list[str]
    nouns: list[str]
    things: list[str]
    barriers: list[str]


def quest_of(house: House, goal: str) -> Quest:
    """The quest of a task's parameter ``goal``: ``take THING`` or ``put THING FURNITURE``, by numbers."""
    quest, words = Quest(house), goal.split()
    if words[0] == "take":
        quest.hold(int(words[1]))
    else:
        quest.put(int(words[1]), int(words[2]))
    return quest


def _steps(sketch: _Sketch) -> list[Step] | None:
    """The steps of the sketch's quest; None if it cannot be solved."""
    pieces, things = len(sketch.furniture), len(sketch.places)
    numbers = [str(number) for number in range(len(sketch.ways) + pieces)]
    names = _Names(["room"] * sketch.rooms, [f"piece {n}" for n in range(pieces)], ["thing"] * things, numbers)
    params = sketch.params(names)
    try:
        return quest_of(House(params), params["goal"]).steps
    except Circular:
        return None


def _sketch(draws: Draws, level: TreasureLevel, attempts: int) -> _Sketch | None:
    """A house with a quest of the level's length; None if there was none in so many attempts."""
    for _ in range(attempts):
        ways = draw_ways(draws, level.rooms, 0 if level.plain else 3)
        sketch = _Sketch(ways, level.rooms, draws.below(level.rooms))
        if level.plain:
            sketch.places.append(draws.below(level.rooms))
        else:
            _furnish(draws, sketch)
        steps = _steps(sketch) or []
        for _ in range(0 if level.plain else _PADDINGS):
            if len(steps) >= level.quest:
                break
            longer = _padded(draws, sketch, level, steps)
            new = _steps(longer) if longer else None
            if longer and new and len(steps) < len(new) <= level.quest:
                sketch, steps = longer, new
        if len(steps) == level.quest:
            _fill(draws, sketch, level)
            return sketch
    return None


def _furnish(draws: Draws, sketch: _Sketch) -> None:
    """Open furniture, the treasure and its target."""
    for room in range(sketch.rooms):
        for _ in range(draws.between(1, 2)):
            lids = sum(bool(state) for _, state in sketch.furniture) < len(COLOURS) - len(ROOMS) // 2
            sketch.furniture.append((room, draws.pick(("", "", "open", "closed")) if lids else ""))
    sketch.places.append(_open_place(draws, sketch))
    if draws.below(2):
        sketch.target = draws.below(len(sketch.furniture))
        if sketch.places[0] == sketch.rooms + sketch.target:
            sketch.places[0] = draws.below(sketch.rooms)


def _open_place(draws: Draws, sketch: _Sketch) -> int:
    """A floor, or furniture without a closed lid."""
    pieces = [sketch.rooms + i for i, (_, state) in enumerate(sketch.furniture) if state in ("", "open")]
    return draws.pick([*range(sketch.rooms), *pieces])


def _padded(draws: Draws, sketch: _Sketch, level: TreasureLevel, steps: list[Step]) -> _Sketch | None:
    """The sketch with one more door, lid or lock on the quest; None if what was drawn does not fit."""
    longer, ways = sketch.copy(), len(sketch.ways)
    lids = [piece for piece, (_, state) in enumerate(longer.furniture) if state in ("open", "closed")]
    match draws.below(3):
        case 0:
            rooms = [sketch.start, *(step.subject for step in steps if step.part == "visit")]
            passed = {frozenset(pair) for pair in pairwise(rooms)}
            free = [
                n for n in bridges(longer.ways) if n not in longer.doors and frozenset(longer.ways[n][::2]) in passed
            ]
            if not free:
                return None
            longer.doors[draws.pick(free)] = "closed"
        case 1:
            thing = draws.below(len(longer.places))
            place = longer.places[thing]
            if not lids or (place >= longer.rooms and longer.furniture[place - longer.rooms][1]):
                return None
            piece = draws.pick(lids)
            if piece == longer.target:
                return None
            longer.places[thing] = longer.rooms + piece
            longer.furniture[piece] = (longer.furniture[piece][0], "closed")
        case _:
            closed = [way for way, state in longer.doors.items() if state == "closed"]
            barriers = [*closed, *(ways + piece for piece in lids if longer.furniture[piece][1] == "closed")]
            if not barriers or len(longer.places) >= level.objects:
                return None
            barrier = draws.pick(barriers)
            longer.keys[len(longer.places)] = barrier
            longer.places.append(_open_place(draws, longer))
            if barrier < ways:
                longer.doors[barrier] = "locked"
            else:
                longer.furniture[barrier - ways] = (longer.furniture[barrier - ways][0], "locked")
    return longer


def _fill(draws: Draws, sketch: _Sketch, level: TreasureLevel) -> None:
    """Things that the quest does not need, anywhere but where the treasure belongs."""
    while len(sketch.places) < level.objects:
        sketch.places.append(_open_place(draws, sketch))


# ---- names --------------------------------------------------------------------------------------------------


def _named(draws: Draws, sketch: _Sketch, level: TreasureLevel, unseen: bool) -> dict[str, Any]:
    """Parameters with names of which plan and goal are both kept for ``test_unseen``, or neither is."""
    rooms = name_rooms(draws, sketch.ways, sketch.rooms, unseen)
    colours = sample(draws, COLOURS, len(COLOURS))
    marked = [n for n in range(len(sketch.ways) + len(sketch.furniture)) if _has_lid(sketch, n)]
    barriers = dict(zip(marked, colours, strict=False))  # enough: see ``_furnish``
    materials = sample(draws, MATERIALS, len(MATERIALS))
    while True:
        things = sample(draws, THINGS, len(sketch.places)) if not level.plain else ["coin"]
        supports = sample(draws, SUPPORTS, len(SUPPORTS))
        nouns = [
            draws.pick(CONTAINERS) if state else f"{materials[i % len(materials)]} {supports[i % len(supports)]}"
            for i, (_, state) in enumerate(sketch.furniture)
        ]
        target = nouns[sketch.target].split()[-1] if sketch.target >= 0 else ""
        if level.plain or is_unseen("goal", things[0], target) == unseen:
            break
    numbers = range(len(sketch.ways) + len(sketch.furniture))
    return sketch.params(_Names(rooms, nouns, things, [barriers.get(number, "") for number in numbers]))


def _has_lid(sketch: _Sketch, barrier: int) -> bool:
    ways = len(sketch.ways)
    return barrier in sketch.doors if barrier < ways else bool(sketch.furniture[barrier - ways][1])
