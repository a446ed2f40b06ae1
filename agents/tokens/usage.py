"""Usage of a reply, counted by the engine that drew it or by the server."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self


class Usage(NamedTuple):
    """Usage of one reply; unknown values are None.

    Attributes:
        prompt_tokens: of the full prompt, whether or not parts of it were computed before.
        reply_tokens: of the reply, with the hidden reasoning that a server bills.
        cut: whether the reply ended at its limit of tokens, and not by itself.
        cost: USD, at the prices that were given.
    """

    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    cut: bool | None = None
    cost: float | None = None


class Spent(NamedTuple):
    """The sum over replies; None as long as no reply has said it."""

    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    cost: float | None = None

    def plus(self, *more: "Spent | Usage") -> Self:
        """This and what others took."""
        counted = (self, *more)
        return type(self)(**{name: _total(getattr(usage, name) for usage in counted) for name in Spent._fields})

    def minus(self, other: "Spent") -> Self:
        """Difference to ``other``; never below 0, where sums of floats differ in their last digits."""
        mine, theirs = self._asdict(), other._asdict()
        return type(self)(**{n: None if mine[n] is None else max(mine[n] - (theirs[n] or 0), 0) for n in Spent._fields})


NOTHING = Spent()


def _total(values: Iterable[Any]) -> Any:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None
