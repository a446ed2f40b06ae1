"""Household tasks from nothing but a number: every one solvable, no problem in two splits.

Candidates are drawn from (split, difficulty, number, attempt) until their content hash falls into the split, so train,
validation and test are disjoint by construction. ``test_unseen`` is disjoint in structure: its rooms and its pairs of
object and target occur in no other split.

Solvable by construction: the goal's objects lie in receptacles that can be opened, in a room with the station that the
goal needs, and fit the goal's receptacle, where none of them lies at the start.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple
from zlib import crc32

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, split_of
from manyturn.envs.household.layouts import LEVELS, Layout, choices, order_key, possible_goals
from manyturn.envs.household.object_types import FITS, LAMPS, OPENABLE, TRAITS, objects_of
from manyturn.envs.household.problem import Goal, Problem

SIZES = {"train": 1_000_000, "validation": 10_000, "test": 10_000, "test_unseen": 10_000}
_TRAITS = ("pickupable", "cleanable", "heatable", "coolable", "sliceable", "toggleable", "vessel")


class HouseholdTasks(GeneratedTasks):
    """The tasks of one split and difficulty, of all goal kinds or only of some; a task's id is the same either way."""

    def __init__(self, split: str, difficulty: str, kinds: Sequence[str] | None = None):
        all_kinds = LEVELS[difficulty].kinds
        self._places = [i for i, kind in enumerate(all_kinds) if kinds is None or kind in kinds]
        self._period = len(all_kinds)
        rounds = SIZES[split] // self._period
        super().__init__(
            lambda number: make_task(split, difficulty, number), rounds * self._period, f"{split}/{difficulty}/"
        )
        self._length = rounds * len(self._places)

    def __len__(self) -> int:
        return self._length

    def task_at(self, place: int) -> Task:
        turn, at = divmod(place, len(self._places))
        return self._make(turn * self._period + self._places[at])


def make_task(split: str, difficulty: str, number: int) -> Task:
    """The task ``f"{split}/{difficulty}/{number}"``; about a millisecond."""
    kinds = LEVELS[difficulty].kinds
    kind = kinds[number % len(kinds)]
    for attempt in range(10_000):
        draws = Draws("household task", split, difficulty, number, attempt)
        task = Task(
            f"{split}/{difficulty}/{number}", split, _params(draws, difficulty, kind, split), difficulty, (kind,)
        )
        if split not in SPLITS or split_of(task.content) == split:
            return task
    raise AssertionError(f"no candidate for {split}/{difficulty}/{number}")


def find_task(task_id: str) -> Task | None:
    """The task with this id, whatever its difficulty, or None."""
    split, _, rest = task_id.partition("/")
    difficulty = rest.partition("/")[0]
    if split not in SIZES or difficulty not in LEVELS:
        return None
    return HouseholdTasks(split, difficulty).find(task_id)


def _params(draws: Draws, difficulty: str, kind: str, split: str) -> dict[str, str]:
    """Plain values that determine a problem; see ``build``."""
    level = LEVELS[difficulty]
    layout = draws.pick(draws.pick(choices(difficulty, kind, split == "test_unseen")))
    thing, target = draws.pick(possible_goals(layout, kind))
    things = [(thing, place) for place in _target_places(draws, layout, kind, thing, target)]
    if kind == "light":
        things.append((target, draws.pick(_places(layout, target))))
    others = [o for o in objects_in(layout) if o != thing]
    size = draws.between(*level.objects)
    while len(things) < size:
        other = draws.pick(others)
        things.append((other, draws.pick(_places(layout, other))))
    things.sort()
    return {
        "receptacles": layout.text,
        "objects": " ".join([f"{o}:{r}" for o, r in things]),
        "goal": f"{kind} {thing} {target}",
    }


def _target_places(draws: Draws, layout: Layout, kind: str, thing: str, target: str) -> list[int]:
    """Receptacle numbers of the goal's objects at the start: never in a receptacle of the goal's type."""
    free = [place for place in _places(layout, thing) if layout.types[place] != target]
    fewest = 2 if kind == "two" else 1
    return [draws.pick(free) for _ in range(draws.between(fewest, fewest + 1))]


@cache
def objects_in(layout: Layout) -> tuple[str, ...]:
    """Object types, lamps among them, that fit somewhere in a layout."""
    return tuple(o for o in (*objects_of(layout.room), *LAMPS) if _places(layout, o) and _suits(layout.room, o))


def _suits(room: str, thing: str) -> bool:
    return thing not in LAMPS or room in ("bedroom", "livingroom")


@cache
def _places(layout: Layout, thing: str) -> tuple[int, ...]:
    """Numbers of the receptacles where an object or lamp may be."""
    fits = FITS.get(thing) or LAMPS[thing]
    return tuple(i for i, t in enumerate(layout.types) if t in fits)


# ---- from parameters to a problem ---------------------------------------------------------------------------


def _numbered(types: Sequence[str]) -> tuple[str, ...]:
    """Names in the order of identifiers: within a type numbers go down."""
    left: dict[str, int] = {}
    for t in types:
        left[t] = left.get(t, 0) + 1
    names = []
    for t in types:
        names.append(f"{t} {left[t]}")
        left[t] -= 1
    return tuple(names)


class _Room(NamedTuple):
    """Receptacles of a room: types, names, spots (0 is where the agent begins) and the mask of openable ones."""

    types: tuple[str, ...]
    receptacles: tuple[str, ...]
    spots: tuple[int, ...]
    openable: int


@cache
def _room(text: str) -> _Room:
    """The room that a task's parameter describes."""
    words = text.split()
    types = tuple(word.rstrip("+") for word in words)
    spots, spot = [], 0
    for word in words:
        spot += not word.endswith("+")
        spots.append(spot)
    return _Room(types, _numbered(types), tuple(spots), sum(1 << i for i, t in enumerate(types) if t in OPENABLE))


@cache
def _traits_of(thing: str) -> tuple[str, ...]:
    return ("toggleable",) if thing in LAMPS else ("pickupable", *TRAITS[thing])


def build(params: dict[str, str]) -> Problem:
    """The problem of a generated task's parameters.

    Args:
        params: ``receptacles`` (types in order, ``+`` after one that shares the location of the one before),
            ``objects`` (``type:receptacle number``, in order), ``goal`` (kind, object, target).
    """
    types, receptacles, spots, openable = _room(params["receptacles"])
    things = sorted(
        (order_key(kind), kind, int(place)) for kind, _, place in (t.partition(":") for t in params["objects"].split())
    )
    goal = Goal(*params["goal"].split())
    contents, at = [0] * len(types), [0] * (spots[-1] + 1)
    traits: dict[str, int] = {trait: 0 for trait in _TRAITS}
    by_type: dict[str, int] = {}
    for i, (_, kind, place) in enumerate(things):
        bit = 1 << i
        contents[place] |= bit
        at[spots[place]] |= bit
        by_type[kind] = by_type.get(kind, 0) | bit
    fits = dict.fromkeys(types, 0)
    for kind, mask in by_type.items():
        for trait in _traits_of(kind):
            traits[trait] |= mask
        for t in FITS.get(kind, ()):
            if t in fits:
                fits[t] |= mask
    return Problem(
        goal=goal,
        # Which of the two forms follows from the objects, so that one problem does not hide behind two sentences.
        sentence=goal.sentence(crc32(params["objects"].encode()) & 1),
        receptacles=receptacles,
        spots=spots,
        locations=tuple([f"loc {n}" for n in range(len(at), 0, -1)]),
        objects=_numbered([kind for _, kind, _ in things]),
        contents=tuple(contents),
        at=tuple(at),
        start=0,
        openable=openable,
        opened=0,
        fits=tuple([fits[t] for t in types]),
        traits=traits,
    )
