"""A household problem: which receptacles and objects there are, where everything starts, and the goal.

Sets of objects or receptacles are bit masks: bit ``i`` stands for the i-th name, and names stand in the order of their
identifiers, which is the order in which ALFWorld lists them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

KINDS = ("put", "light", "clean", "heat", "cool", "two")
STATIONS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
KNIVES = ("knife", "butterknife")
_SENTENCES = {
    "put": ("put a {o} in {r}.", "put some {o} on {r}."),
    "light": ("look at {o} under the {r}.", "examine the {o} with the {r}."),
    "clean": ("put a clean {o} in {r}.", "clean some {o} and put it in {r}."),
    "heat": ("put a hot {o} in {r}.", "heat some {o} and put it in {r}."),
    "cool": ("put a cool {o} in {r}.", "cool some {o} and put it in {r}."),
    "two": ("put two {o} in {r}.", "find two {o} and put them in {r}."),
}


def bits(mask: int) -> Iterator[int]:
    """Positions of the ones of ``mask``, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal of a problem.

    Args:
        kind: one of ``KINDS``.
        object: type of the object to place, or to look at.
        target: type of the receptacle, or of the lamp for ``light``.
    """

    kind: str
    object: str
    target: str

    def sentence(self, form: int = 0) -> str:
        """The goal in words; ALFWorld has two forms for each kind."""
        return _SENTENCES[self.kind][form].format(o=self.object, r=self.target)


@dataclass(frozen=True)
class Problem:
    """Everything that is fixed for an episode. ``R`` receptacles, ``O`` objects, ``L`` locations.

    Args:
        goal: what is to be reached.
        sentence: the goal as the agent reads it, with its full stop.
        receptacles: R names, such as ``"cabinet 3"``; only receptacles that stand somewhere.
        spots: R location numbers; several receptacles may share one.
        locations: L names, which only the older grammar shows (``"loc 7"``).
        objects: O names, such as ``"mug 1"``.
        contents: R masks over objects: what is in or on each receptacle. An object may be in two at once.
        at: L masks over objects: what lies at each location, in a receptacle or not.
        start: location number where the agent begins.
        openable, opened: masks over receptacles.
        fits: R masks over objects: what may be put there.
        traits: trait -> mask over objects: pickupable, cleanable, heatable, coolable, sliceable, toggleable, vessel.
        states: state -> mask over objects at the start: clean, hot, cool, sliced, toggled.
        inside: object number -> mask of the objects inside it (shown only; nothing changes it).
        held: number of the object that the agent holds at the start, or -1.
    """

    goal: Goal
    sentence: str
    receptacles: tuple[str, ...]
    spots: tuple[int, ...]
    locations: tuple[str, ...]
    objects: tuple[str, ...]
    contents: tuple[int, ...]
    at: tuple[int, ...]
    start: int
    openable: int
    opened: int
    fits: tuple[int, ...]
    traits: Mapping[str, int]
    states: Mapping[str, int] = field(default_factory=dict)
    inside: Mapping[int, int] = field(default_factory=dict)
    held: int = -1

    @cached_property
    def receptacle_types(self) -> tuple[str, ...]:
        return tuple(name.partition(" ")[0] for name in self.receptacles)

    @cached_property
    def object_types(self) -> tuple[str, ...]:
        return tuple(name.partition(" ")[0] for name in self.objects)

    @cached_property
    def here(self) -> tuple[tuple[int, ...], ...]:
        """L tuples: the receptacles at each location."""
        groups: list[list[int]] = [[] for _ in self.locations]
        for receptacle, spot in enumerate(self.spots):
            groups[spot].append(receptacle)
        return tuple(map(tuple, groups))

    @cached_property
    def targets(self) -> int:
        """Mask of the objects that can serve the goal."""
        mask = self.of_type(self.goal.object)
        trait = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}.get(self.goal.kind)
        return mask & self.traits.get(trait, 0) if trait else mask

    @cached_property
    def lamps(self) -> int:
        """Mask of the lamps that can serve the goal; 0 unless the goal is to look at something in the light."""
        if self.goal.kind != "light":
            return 0
        return self.of_type(self.goal.target) & self.traits.get("toggleable", 0)

    @cached_property
    def goals(self) -> tuple[int, ...]:
        """Numbers of the receptacles that can serve the goal."""
        return tuple(i for i, t in enumerate(self.receptacle_types) if t == self.goal.target)

    @cached_property
    def knives(self) -> int:
        return self.of_type(*KNIVES)

    def of_type(self, *names: str) -> int:
        """Mask of the objects of these types."""
        return sum(1 << i for i, t in enumerate(self.object_types) if t in names)
