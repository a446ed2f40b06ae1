"""Shapes of tasks, and how splits part them.

A shape is what a task asks for without whom it is for: how the customer is found, which figure is asked for, and the
kinds of requests with the rules that forbid some. No shape belongs to two splits, in any order of its requests, and
each of its pieces occurs in training shapes. The lowest difficulty has so few shapes that nothing new can be put
together from their pieces: its splits share them, and differ in customers alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.desk.pack import Kind, Pack

WAYS = ("id", "user", "email", "name")
REFUSED = 0.15  # of all requests
_SHARES = 7  # of which one goes to test and one to validation


@dataclass(frozen=True, slots=True)
class ShapeLevel:
    """A difficulty.

    Args:
        requests: fewest and most of a task.
        ways: how the things that requests are about may be found: by their ``id``, or through the customer's id
            (``user``), ``email`` address, or ``name`` and zip code.
        asks: whether a figure may be asked for.
        simple: whether requests are of the simple kinds only, and records show no more than those turn on.
        turns: that a task may take, in writing; talking doubles them.
        parted: whether no shape belongs to two splits.
    """

    requests: tuple[int, int]
    ways: tuple[str, ...]
    asks: bool
    simple: bool
    turns: int
    parted: bool = True


LEVELS = {
    "tiny": ShapeLevel((1, 1), ("id",), asks=False, simple=True, turns=12, parted=False),
    "easy": ShapeLevel((1, 1), WAYS, asks=True, simple=False, turns=16),
    "medium": ShapeLevel((2, 3), WAYS, asks=True, simple=False, turns=32),
    "hard": ShapeLevel((3, 5), WAYS, asks=True, simple=False, turns=48),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of a task's request.

    Args:
        way: how things are found.
        figure: the figure, or ``""``.
        requests: names of kinds, such as ``cancel``, with the rule that forbids one, such as ``cancel R1``, in any
            order.
    """

    way: str
    figure: str
    requests: tuple[str, ...]


def split_of_shape(pack: Pack, shape: Shape) -> str:
    """The one split that a shape belongs to: a seventh of them each to validation and test.

    Pieces are numbered so that of the shapes with one request, at every difficulty, some of each split are fulfilled
    and some refused, and that those which differ in the way alone are not all held out.
    """
    granted, refused = requests_of(pack)
    place = 3 * WAYS.index(shape.way) + 2 * ("", *pack.figures).index(shape.figure)
    place += sum((refused if " " in name else granted).index(name) for name in shape.requests)
    return {0: "test", 1: "validation"}.get(place % _SHARES, "train")


def requests_of(pack: Pack) -> tuple[list[str], list[str]]:
    """All that a request can be: kinds, and kinds with a rule that forbids them; simple kinds come first."""
    kinds = sorted(pack.kinds, key=lambda kind: not kind.simple)
    refused = [f"{kind.name} {rule.name}" for kind in kinds for rule in pack.rules if kind.tool in rule.tools]
    return [kind.name for kind in kinds], refused


def draw_shape(draws: Draws, pack: Pack, level: ShapeLevel, split: str) -> Shape:
    """A shape that a split may have; how many requests are refused does not depend on the split."""
    refusals = [draws.below(1000) < 1000 * REFUSED for _ in range(draws.between(*level.requests))]
    while True:
        shape = _drawn(draws, pack, level, refusals)
        if not level.parted or split_of_shape(pack, shape) == split:
            return shape


def _drawn(draws: Draws, pack: Pack, level: ShapeLevel, refusals: Sequence[bool]) -> Shape:
    """A shape of distinct kinds."""
    left = [kind for kind in pack.kinds if kind.simple or not level.simple]
    names = tuple(_request(draws, pack, left, refused) for refused in refusals)
    figure = draws.pick(tuple(pack.figures)) if level.asks and draws.below(3) == 0 else ""
    return Shape(draws.pick(level.ways), figure, names)


def _request(draws: Draws, pack: Pack, left: list[Kind], refused: bool) -> str:
    """A request of one of the kinds that are left; a kind that no rule forbids is never refused."""
    while True:
        kind = left.pop(draws.below(len(left)))
        rules = [rule.name for rule in pack.rules if kind.tool in rule.tools] if refused else [""]
        if rules:
            return f"{kind.name} {draws.pick(rules)}".strip()
