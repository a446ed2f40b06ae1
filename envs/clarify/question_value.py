"""Exact values of questions: an expected return for each question and each choice, by dynamic programming.

The things that a request may mean have known odds. A question names an attribute and has a price; its answer keeps the
things that share the value. A choice ends the episode and pays if it is right. Only the things that remain and the
turns that remain decide what is best, so a table over both gives the expected value of information exactly (Raiffa and
Schlaifer 1961), not only for the next question but for the best plan after it.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

WORTH = 100  # points of the right choice


class Things(NamedTuple):
    """Things that a request may mean.

    Attributes:
        values: of each thing, its attributes' values by name.
        odds: of each thing, a whole number above 0; its probability is its share of their sum.
        prices: attribute -> points that the question for it costs.
    """

    values: Sequence[Mapping[str, str]]
    odds: Sequence[int]
    prices: Mapping[str, int]


class QuestionValues:
    """Expected returns in an episode, where a right choice is worth 1.

    ``left`` is a tuple of places in ``things``, in order; ``turns`` says how many are left, this one included. Whole
    numbers hold the values, so that a question of no value is never one of small value.
    """

    def __init__(self, things: Things):
        self._things = things
        self._best: dict[tuple[tuple[int, ...], int], int] = {}

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self._things.prices)

    def remaining(self, left: tuple[int, ...], attribute: str, value: str) -> tuple[int, ...]:
        """Things that an answer leaves."""
        return tuple(place for place in left if self._things.values[place][attribute] == value)

    def of_question(self, left: tuple[int, ...], attribute: str, turns: int) -> float:
        """Expected return of a question, its price taken off, and of what is best after each answer."""
        return self._share(left, self._question(left, attribute, turns))

    def of_choice(self, left: tuple[int, ...], place: int) -> float:
        """Probability that this thing is meant."""
        return self._share(left, WORTH * self._things.odds[place]) if place in left else 0.0

    def best(self, left: tuple[int, ...], turns: int) -> float:
        """Expected return of the best plan."""
        return self._share(left, self._plan(left, turns))

    def gain(self, left: tuple[int, ...], attribute: str, turns: int) -> float:
        """Value of a question: its expected return, less that of the best choice without it."""
        return self._share(left, self._question(left, attribute, turns) - self._choice(left))

    def best_question(self, left: tuple[int, ...], turns: int) -> str | None:
        """The question of the highest value, or None if none has a value above 0."""
        values = {attribute: self._question(left, attribute, turns) for attribute in self.attributes}
        best = max(self.attributes, key=lambda attribute: values[attribute])
        return best if values[best] > self._choice(left) else None

    def likeliest(self, left: tuple[int, ...]) -> int:
        """The first of the likeliest things."""
        return max(left, key=lambda place: self._things.odds[place])

    def _share(self, left: tuple[int, ...], points: int) -> float:
        return points / (WORTH * self._weight(left))

    def _weight(self, left: tuple[int, ...]) -> int:
        return sum(self._things.odds[place] for place in left)

    def _choice(self, left: tuple[int, ...]) -> int:
        return WORTH * max(self._things.odds[place] for place in left)

    def _plan(self, left: tuple[int, ...], turns: int) -> int:
        if turns < 1:
            return 0
        if (left, turns) not in self._best:
            questions = (self._question(left, attribute, turns) for attribute in self.attributes)
            self._best[left, turns] = max(self._choice(left), *questions)
        return self._best[left, turns]

    def _question(self, left: tuple[int, ...], attribute: str, turns: int) -> int:
        answers = {self._things.values[place][attribute]: None for place in left}
        after = sum(self._plan(self.remaining(left, attribute, value), turns - 1) for value in answers)
        return after - self._things.prices[attribute] * self._weight(left)
