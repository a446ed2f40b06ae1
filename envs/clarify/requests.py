"""Requests from nothing but a number: things on a shelf, how often each was taken, and a customer's words.

Three of ten requests fit one thing. The others fit two or more, and the customer means each with the odds that the
counts show. Contents are drawn until their hash falls into the split; the nouns with the attributes that requests of
``test_unseen`` name occur in no other split.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, is_held_out, params_of_split

VALUES = {
    "size": ("small", "medium", "large"),
    "age": ("new", "used", "old"),
    "colour": ("red", "blue", "green", "white", "black", "yellow", "brown", "grey", "pink", "purple"),
    "material": ("wooden", "glass", "steel", "clay", "paper", "plastic", "stone", "copper"),
}
NOUNS = (
    *("cup", "bowl", "box", "lamp", "chair", "tray", "vase", "clock", "plate", "jar", "stool", "basket", "bottle"),
    *("frame", "bench", "pan", "bucket", "jug", "tub", "ladder"),
)
SIZES = {"train": 100_000, "validation": 10_000, "test": 10_000, "test_unseen": 10_000}
_RARER = (1, 1, 1, 2, 2, 3, 4, 6, 8, 10)  # of 20 times, how often the rarer of two things was taken
_TRIES = 100
_TIMES = 20  # that things of one request were taken, together


@dataclass(frozen=True)
class ClarifyLevel:
    """Size of a request.

    Args:
        listed: things on the shelf.
        fitting: things that a request fits, at most.
        attributes: that things have, and questions ask for.
        prices: of questions, in points of 100.
        own_prices: whether each question has a price of its own.
        helpful: whether the shelf shows only what fits, and answers say what is left.
        turns: that an episode may take.
    """

    listed: int
    fitting: int
    attributes: tuple[str, ...]
    prices: tuple[int, ...]
    own_prices: bool
    helpful: bool
    turns: int


_ALL = tuple(VALUES)
LEVELS = {
    "tiny": ClarifyLevel(2, 2, ("size", "colour"), (3, 12, 28), own_prices=False, helpful=True, turns=4),
    "easy": ClarifyLevel(4, 3, ("size", "colour"), (3, 12, 28), own_prices=False, helpful=False, turns=5),
    "medium": ClarifyLevel(6, 4, _ALL[1:], (2, 6, 14, 28), own_prices=True, helpful=False, turns=6),
    "hard": ClarifyLevel(9, 6, _ALL, (2, 4, 8, 16, 32), own_prices=True, helpful=False, turns=8),
}


def requests(split: str, name: str) -> GeneratedTasks:
    """The tasks of a split and level."""
    prefix, level = f"{split}/{name}/", LEVELS[name]

    def make(number: int) -> Task:
        draws = Draws("clarify", prefix, number)
        params = params_of_split(lambda: _drawn(draws, level, unseen=split not in SPLITS), split)
        fits = len(fitting(params))
        return Task(f"{prefix}{number}", split, params, name, ("ambiguous" if fits > 1 else "clear",))

    return GeneratedTasks(make, SIZES[split], prefix)


def fitting(params: Any) -> tuple[int, ...]:
    """Places of the things that the words of a request fit."""
    words = {"noun": params["noun"], **params["words"]}
    return tuple(
        place
        for place, thing in enumerate(params["things"])
        if all(thing[name] == value for name, value in words.items())
    )


def _drawn(draws: Draws, level: ClarifyLevel, *, unseen: bool) -> dict[str, Any]:
    """The params of a request: its noun and words, the things with counts, the prices, and the thing that is meant."""
    while True:
        noun, base = draws.pick(NOUNS), _values(draws, level)
        named = [name for name in level.attributes if draws.below(3) == 0]
        if is_held_out("clarify", noun, named) == unseen and len(named) < len(level.attributes):
            break
    words = {name: base[name] for name in named}
    count = draws.between(2, level.fitting) if draws.below(10) < 7 else 1
    fit: list[dict[str, str]] = []
    for _ in range(_TRIES):  # what the words leave open may have fewer values than that
        if len(fit) == count:
            break
        thing = {"noun": noun, **_values(draws, level), **words}
        if thing not in fit:
            fit.append(thing)
    things = list(fit)
    while not level.helpful and len(things) < level.listed:
        thing = {"noun": noun if words and draws.below(3) else draws.pick(NOUNS), **_values(draws, level)}
        matches = thing["noun"] == noun and all(thing[name] == value for name, value in words.items())
        if not matches and thing not in things:
            things.append(thing)
    counts = [*_counts(draws, len(fit)), *(draws.between(1, _TIMES) for _ in things[len(fit) :])]
    meant = _meant(draws, counts[: len(fit)])
    order = _shuffled(draws, len(things))
    price = draws.pick(level.prices)
    return {
        "noun": noun,
        "words": words,
        "things": [things[place] for place in order],
        "counts": [counts[place] for place in order],
        "prices": {name: draws.pick(level.prices) if level.own_prices else price for name in level.attributes},
        "meant": order.index(meant),
    }


def _values(draws: Draws, level: ClarifyLevel) -> dict[str, str]:
    return {name: draws.pick(VALUES[name]) for name in level.attributes}


def _counts(draws: Draws, fits: int) -> list[int]:
    """The number of each that was taken: any number for one, 20 in all for several."""
    if fits == 1:
        return [draws.between(1, 2 * _TIMES)]
    if fits == 2:
        rarer = draws.pick(_RARER)
        return [rarer, _TIMES - rarer] if draws.below(2) else [_TIMES - rarer, rarer]
    cuts = [0, *sorted(cut + 1 for cut in _shuffled(draws, _TIMES - 1)[: fits - 1]), _TIMES]
    return [high - low for low, high in pairwise(cuts)]


def _meant(draws: Draws, counts: list[int]) -> int:
    """A place, with the odds that the counts give."""
    point = draws.below(sum(counts))
    for place, count in enumerate(counts):
        point -= count
        if point < 0:
            return place
    raise AssertionError("a point below the sum of the counts lies in one of them")


def _shuffled(draws: Draws, size: int) -> list[int]:
    order = list(range(size))
    for place in range(size - 1, 0, -1):
        other = draws.below(place + 1)
        order[place], order[other] = order[other], order[place]
    return order
