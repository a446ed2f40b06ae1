"""Random draws of a catalogue: the price of a product with a range of prices, and price limits."""

import random
from collections.abc import Sequence
from typing import Protocol

from manyturn.envs.contract.random_keys import generator

_STEPS = [10.0 * step for step in range(1, 100)]  # dollars


class Draws(Protocol):
    """Source of the numbers; ``key`` is the product's id, for a limit with what it is a limit of."""

    def price(self, key: str, low: float, high: float) -> float: ...

    def second_of_two(self, key: str, steps: Sequence[float]) -> float: ...


class KeyedDraws:
    """Numbers that depend on the key alone: the same in every run, whatever else is in the catalogue."""

    def price(self, key: str, low: float, high: float) -> float:
        return low + (high - low) * float(generator("webshop price", key).random())

    def second_of_two(self, key: str, steps: Sequence[float]) -> float:
        two = generator("webshop limit", key).choice(len(steps), size=2, replace=False)
        return steps[int(max(two))]


class OriginalDraws:
    """The numbers of a run of the original that called ``random.seed(seed)`` before it loaded its catalogue.

    The original draws from one stream, in the order of its files, and seeds it again only afterwards; so two of its
    runs differ in their price limits. Only Python's own generator can repeat it.
    """

    def __init__(self, seed: int):
        self._stream = random.Random(seed)

    def price(self, key: str, low: float, high: float) -> float:
        return self._stream.uniform(low, high)

    def second_of_two(self, key: str, steps: Sequence[float]) -> float:
        return max(self._stream.sample(steps, 2))


def price_limit(draws: Draws, key: str, price: float) -> float | None:
    """The larger of two of the next four multiples of ten dollars above a price; None above 970 dollars."""
    steps = [step for step in _STEPS if step > price][:4]
    return draws.second_of_two(key, steps) if len(steps) >= 2 else None


def draws_of(original: int | None) -> Draws:
    """Source of prices and price limits, see ``official.load``."""
    return KeyedDraws() if original is None else OriginalDraws(original)
