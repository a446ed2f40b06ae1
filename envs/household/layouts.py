"""Rooms without objects: which receptacles stand there and which of them share a location."""

from dataclasses import dataclass
from functools import cache

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import split_of
from manyturn.envs.household.object_types import FITS, LAMPS, OPENABLE, ROOMS, goal_pairs
from manyturn.envs.household.problem import STATIONS

SEEN_PER_ROOM, UNSEEN_PER_ROOM = 32, 8
_SHARES = {"seen": 0.8, "unseen": 0.2}
ROOMS_FOR = {
    "put": ("kitchen", "bathroom", "bedroom", "livingroom"),
    "light": ("bedroom", "livingroom"),
    "clean": ("kitchen", "bathroom"),
    "heat": ("kitchen",),
    "cool": ("kitchen",),
    "two": ("kitchen", "bathroom", "bedroom", "livingroom"),
}


@dataclass(frozen=True, slots=True)
class RoomLevel:
    """A difficulty.

    Args:
        kinds: goal kinds, dealt out to tasks in turn.
        receptacles: fewest and most.
        objects: fewest and most.
        closed: largest share of receptacles with a door.
        shared: of ten neighbours of one type, how many share a location; only one of them is seen on arrival.
        turns: that an episode may take.
    """

    kinds: tuple[str, ...]
    receptacles: tuple[int, int]
    objects: tuple[int, int]
    closed: float
    shared: int
    turns: int


LEVELS = {
    "tiny": RoomLevel(("put",), (4, 6), (3, 8), 0.25, 0, 20),
    "easy": RoomLevel(("put", "light", "clean", "heat", "cool"), (8, 10), (15, 20), 0.3, 0, 30),
    "medium": RoomLevel(("put", "light", "clean", "heat", "cool", "two"), (11, 16), (20, 30), 0.4, 1, 40),
    "hard": RoomLevel(("put", "light", "clean", "heat", "cool", "two"), (17, 25), (30, 45), 0.5, 2, 50),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """A room's receptacles.

    Args:
        room: name of the room.
        types: R types in the order of identifiers.
        joins: R flags: whether the receptacle stands where the one before it stands.
        unseen: whether the layout is kept for ``test_unseen``.
    """

    room: str
    types: tuple[str, ...]
    joins: tuple[bool, ...]
    unseen: bool

    @property
    def text(self) -> str:
        """Compact form: types in order, ``+`` after one that shares the location of the one before."""
        return " ".join(t + "+" * j for t, j in zip(self.types, self.joins, strict=True))


def order_key(kind: str) -> str:
    """Sort key of a type's identifiers: ``sinkbasin`` under ``sink_bar_``."""
    return kind.removesuffix("basin") + "_"


@cache
def pair_is_unseen(thing: str, target: str) -> bool:
    """True if this pair of object and target type is reserved for ``test_unseen``."""
    return split_of(digest("household pair", thing, target), _SHARES) == "unseen"


def _draw(room: str, level: RoomLevel, key: tuple[object, ...]) -> Layout:
    draws = Draws(*key)
    limits, size = ROOMS[room], draws.between(*level.receptacles)
    full = level.receptacles[0] > sum(low for low, _ in limits.values())
    counts = {t: low if full else 0 for t, (low, _) in limits.items()}
    closed = sum(n for t, n in counts.items() if t in OPENABLE)
    while (total := sum(counts.values())) < size:
        crowded = (closed + 1) > level.closed * size
        free = [t for t, (_, most) in limits.items() if counts[t] < most and not (crowded and t in OPENABLE)]
        if not free:
            raise AssertionError(f"a {room} cannot hold {size} receptacles, {total} is the most")
        chosen = draws.pick(free)
        counts[chosen] += 1
        closed += chosen in OPENABLE
    types = tuple(t for t in sorted(counts, key=order_key) for _ in range(counts[t]))
    joins = tuple(i > 0 and t == types[i - 1] and draws.below(10) < level.shared for i, t in enumerate(types))
    bare = Layout(room, types, joins, unseen=False)
    # By the text alone: two rooms may have the same receptacles.
    unseen = split_of(digest("household layout", bare.text), _SHARES) == "unseen"
    return Layout(room, types, joins, unseen)


@cache
def layouts(difficulty: str, room: str, unseen: bool) -> tuple[Layout, ...]:
    """All layouts of a room at a difficulty, either those of the three usual splits or those of ``test_unseen``."""
    layouts: dict[str, Layout] = {}
    target_count, number = UNSEEN_PER_ROOM if unseen else SEEN_PER_ROOM, 0
    while len(layouts) < target_count:
        layout = _draw(room, LEVELS[difficulty], ("household layout", difficulty, room, number))
        if layout.unseen == unseen:
            layouts.setdefault(layout.text, layout)
        number += 1
    return tuple(layouts.values())


@cache
def possible_goals(layout: Layout, kind: str) -> tuple[tuple[str, str], ...]:
    """Pairs of object and target type that a layout allows and that are on its side of the hold-out."""
    here = set(layout.types)
    if kind in STATIONS and STATIONS[kind] not in here:
        return ()

    def possible(thing: str, target: str) -> bool:
        if pair_is_unseen(thing, target) != layout.unseen:
            return False
        if kind == "light":
            return not here.isdisjoint(LAMPS[target]) and not here.isdisjoint(FITS[thing])
        return target in here and bool(here & FITS[thing] - {target})

    return tuple(pair for pair in goal_pairs(layout.room, kind) if possible(*pair))


@cache
def choices(difficulty: str, kind: str, unseen: bool) -> tuple[tuple[Layout, ...], ...]:
    """For each room that suits a goal kind, its layouts that allow at least one goal."""
    rooms = [layouts(difficulty, room, unseen) for room in ROOMS_FOR[kind]]
    fitting = [tuple(layout for layout in room if possible_goals(layout, kind)) for room in rooms]
    return tuple(room for room in fitting if room)
