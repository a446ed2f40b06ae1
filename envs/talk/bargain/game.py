"""Subject of a bargain: a price, or a split of things that two sides value differently.

Terms are plain values: a price, or how many of each kind of thing the first side gets.
"""

import abc
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

from manyturn.envs.contract.stable_random import Draws

PRICE, SPLIT = "price", "split"
Terms = int | tuple[int, ...]


class Game(abc.ABC):
    """The rules of one bargain. Worth is a share of what a side can hope for: 1 is all, 0 is what no deal is worth.

    Attributes:
        sides: names of the two.
    """

    sides: tuple[str, str]

    @abc.abstractmethod
    def worth(self, side: int, terms: Terms) -> float:
        """Worth of terms to a side; below 0 where no deal is better."""

    @abc.abstractmethod
    def offers(self) -> Sequence[Terms]:
        """Terms that can be offered, for lists; a price may also be any other whole number."""

    @abc.abstractmethod
    def words(self, side: int, terms: Terms) -> str:
        """Terms as a side offers them."""

    @abc.abstractmethod
    def read(self, side: int, words: str) -> Terms | None:
        """Inverse of ``words``; None if they are no terms."""

    @abc.abstractmethod
    def brief(self, side: int) -> str:
        """Private facts of a side."""

    def other_best(self, side: int, terms: Terms) -> float:
        """The Pareto gap: what the side could have had more without the other having less."""
        rest = self.worth(1 - side, terms)
        fair = [self.worth(side, other) for other in self.offers() if self.worth(1 - side, other) >= rest - 1e-9]
        return max([*fair, self.worth(side, terms)]) - self.worth(side, terms)


class PriceGame(Game):
    """A buyer, who pays at most ``most``, and a seller, who takes at least ``least``, below ``most``.

    Args:
        params: ``thing``, ``least``, ``most`` and ``listed``, the price at which it is offered.
    """

    sides = ("buyer", "seller")

    def __init__(self, params: Mapping[str, Any]):
        self._thing, self.listed = params["thing"], params["listed"]
        self.least, self.most = params["least"], params["most"]

    def worth(self, side: int, terms: Terms) -> float:
        assert isinstance(terms, int)
        gain = self.most - terms if side == 0 else terms - self.least
        return gain / (self.most - self.least)

    def offers(self) -> Sequence[Terms]:
        step = max(1, self.listed // 20)
        return range(self.listed % step + step, self.listed + 1, step)

    def words(self, side: int, terms: Terms) -> str:
        return str(terms)

    def read(self, side: int, words: str) -> Terms | None:
        match = re.fullmatch(r"\$?([0-9]{1,7})(?: dollars)?", words)
        return int(match[1]) if match else None

    def brief(self, side: int) -> str:
        if side == 0:
            return f"You want to buy a {self._thing}, listed at {self.listed}. It is worth {self.most} to you."
        return f"You want to sell a {self._thing}, listed at {self.listed}. It is worth {self.least} to you."


class SplitGame(Game):
    """Things of three kinds are split; what all are worth adds up to 10 for each side.

    Args:
        params: ``things``, ``counts`` and ``values``, a list for each side.
    """

    sides = ("first", "second")

    def __init__(self, params: Mapping[str, Any]):
        self._things: list[str] = params["things"]
        self._counts, self._values = params["counts"], params["values"]
        self._offers = list(product(*(range(count + 1) for count in self._counts)))
        self._worth = [{terms: self._value(side, terms) for terms in self._offers} for side in range(2)]

    def worth(self, side: int, terms: Terms) -> float:
        assert isinstance(terms, tuple)
        return self._worth[side][terms]

    def offers(self) -> Sequence[Terms]:
        return self._offers

    def words(self, side: int, terms: Terms) -> str:
        return ", ".join(f"{n} {thing}" for n, thing in zip(self._of(side, terms), self._things, strict=True))

    def read(self, side: int, words: str) -> Terms | None:
        share = dict.fromkeys(self._things, 0)
        for part in re.split(r", | and ", words):
            match = re.fullmatch(r"([0-9]) ([a-z]+)", part)
            if match is None or match[2] not in share:
                return None
            share[match[2]] = int(match[1])
        if any(share[thing] > count for thing, count in zip(self._things, self._counts, strict=True)):
            return None
        return self._of(side, tuple(share.values()))

    def brief(self, side: int) -> str:
        things = ", ".join(f"{count} {thing}" for count, thing in zip(self._counts, self._things, strict=True))
        worth = ", ".join(f"{thing} {value}" for thing, value in zip(self._things, self._values[side], strict=True))
        return f"Items to split: {things}. Value of each item to you: {worth}."

    def _value(self, side: int, terms: Terms) -> float:
        return sum(v * n for v, n in zip(self._values[side], self._of(side, terms), strict=True)) / 10

    def _of(self, side: int, terms: Terms) -> tuple[int, ...]:
        """Items that a side gets by the terms, which count side 0's; its own inverse."""
        assert isinstance(terms, tuple)
        return terms if side == 0 else tuple(c - n for c, n in zip(self._counts, terms, strict=True))


def game_of(params: Mapping[str, Any]) -> Game:
    """The game that a task's params describe."""
    return PriceGame(params) if params["game"] == PRICE else SplitGame(params)


_THINGS = (
    "bicycle", "lamp", "guitar", "desk", "camera", "sofa", "kettle", "drum", "carpet", "radio", "tent", "canoe",
    "clock", "mirror", "printer", "violin", "cupboard", "ladder", "stove", "sledge", "telescope", "globe",
)  # fmt: skip
_KINDS = ("books", "hats", "balls", "cups", "pens", "keys", "maps", "bells", "rings", "masks")


def draw_price(draws: Draws) -> dict[str, Any]:
    """A thing between a seller's least and a buyer's most price, which lie 20 to 60 per cent of the former apart."""
    least = draws.between(20, 400)
    most = least + least * draws.between(20, 60) // 100 + 4
    listed = most + most * draws.between(5, 40) // 100
    return {"game": PRICE, "thing": draws.pick(_THINGS), "least": least, "most": most, "listed": listed}


def draw_split(draws: Draws) -> dict[str, Any]:
    """Five to seven things of three kinds, valued differently by the two."""
    kinds = list(_KINDS)
    things = [kinds.pop(draws.below(len(kinds))) for _ in range(3)]
    while True:
        counts = [draws.between(1, 4) for _ in range(3)]
        worths = _worths(tuple(counts))
        if 5 <= sum(counts) <= 7 and len(worths) > 1:
            one, two = draws.pick(worths), draws.pick(worths)
            if one != two:
                return {"game": SPLIT, "things": things, "counts": counts, "values": [list(one), list(two)]}


@cache
def _worths(counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All ways to value the kinds so that all together are worth 10 and two kinds at least are worth something."""
    ways = product(*(range(10 // count + 1) for count in counts))
    return [w for w in ways if sum(v * n for v, n in zip(w, counts, strict=True)) == 10 and sum(map(bool, w)) > 1]
