"""Families of things to compute: how they are asked for, and what numbers they are drawn with.

Each asks for a whole number that depends on ``n``, so that one thing's result can be the next one's ``n``.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from manyturn.envs.code_interpreter import solutions
from manyturn.envs.contract.stable_random import Draws

Params = dict[str, Any]


class Family(NamedTuple):
    """One kind of thing to compute.

    Attributes:
        solve: (n, **params) -> the result.
        text: of what it is, with n and the params in braces.
        low, span: n lies in [low, low + span).
        draw: the params.
    """

    solve: Callable[..., int]
    text: str
    low: int
    span: int
    draw: Callable[[Draws], Params]

    @property
    def name(self) -> str:
        return self.solve.__name__


def _remainder(draws: Draws) -> Params:
    while True:
        m, r = draws.between(5, 90), draws.between(1, 89)
        if r < m and math.gcd(r, m) == 1:  # else there is one such prime at most
            return {"m": m, "r": r}


def _generator(draws: Draws) -> Params:
    while not _is_prime(m := draws.between(10_000, 99_999)):  # else the numbers may soon repeat
        pass
    return {"a": draws.between(100, 999), "c": draws.between(100, 999), "m": m}


def _is_prime(number: int) -> bool:
    return all(number % k for k in range(2, math.isqrt(number) + 1))


def _recurrence(draws: Draws) -> Params:
    made = {name: draws.between(2, 99) for name in "abpq"}
    return made | {"m": draws.between(10_000, 999_999)}


def _letters(draws: Draws) -> Params:
    letters = list("abcdefghijklmnopqrstuvwxyz")
    return _generator(draws) | {"letters": "".join(letters.pop(draws.below(len(letters))) for _ in range(4))}


_GOODS = "barley copper flax glass honey iron linen malt oats paper resin salt silk tar wax wool".split()


def _rows(draws: Draws) -> Params:
    goods = list(_GOODS)
    names = [goods.pop(draws.below(len(goods))) for _ in range(8)]
    return {"rows": [[n, draws.between(20, 99), draws.between(2, 9), draws.between(3, 25)] for n in names]}


_DIGITS = "0123456789"
_X = "x(0) = 1 and x(i) = ({a} x(i-1) + {c}) mod {m}"

KNOWN = (
    Family(
        *(solutions.prime_sum, "the sum of all primes below {n} that leave the remainder {r} when divided by {m}"),
        *(3_000, 20_000, _remainder),
    ),
    Family(
        solutions.divisor_count,
        "how many of the {n} whole numbers that follow {start} have exactly {d} divisors and a digit sum "
        "divisible by {s}",
        *(1_000, 4_000),
        lambda draws: {
            "start": draws.between(100, 5_000),
            "d": draws.pick((4, 6, 8, 12)),
            "s": draws.between(2, 9),
        },
    ),
    Family(
        solutions.recurrence,
        "y({n}), where y(0) = {a}, y(1) = {b} and y(i) = ({p} y(i-1) + {q} y(i-2) + i) mod {m}",
        *(2_000, 20_000, _recurrence),
    ),
    Family(
        solutions.collatz,
        "the number, among the {n} whole numbers that follow {start}, that takes the most steps to reach 1 when an "
        "even number is halved and an odd one is replaced by three times itself plus 1 (the smallest of several)",
        *(200, 800, lambda draws: {"start": draws.between(100, 50_000)}),
    ),
    Family(
        solutions.circle,
        "the last one left of {n} people in a circle, numbered from 1, when counting begins with number {s}, "
        "every {k}th person leaves, and counting continues with the next person",
        *(200, 2_000, lambda draws: {"k": draws.between(3, 150), "s": draws.between(1, 150)}),
    ),
    Family(
        solutions.queue,
        "the minute in which the last of {n} customers is served, where {counters} counters are free from minute 0, "
        f"{_X}, customer i = 1, 2, ... arrives x(i) mod 7 minutes after the previous one (the first: after minute "
        "0), goes to the counter that is free earliest, in order of arrival, and takes 1 + (x(i) mod 11) minutes "
        "there",
        *(500, 4_000, lambda draws: _generator(draws) | {"counters": draws.between(2, 4)}),
    ),
    Family(
        solutions.digit_row,
        "how often {pattern} occurs in the digits of {n} consecutive whole numbers written one after another, "
        "beginning with {start}; overlapping occurrences count",
        *(1_000, 8_000),
        lambda draws: {
            "start": draws.between(10, 9_999),
            "pattern": draws.pick(_DIGITS) + draws.pick(_DIGITS),
        },
    ),
    Family(
        solutions.palindromes,
        "how many substrings of at least 3 letters are palindromes, counting every occurrence, in the text of "
        "{n} letters whose letter i = 1, 2, ... is letter number floor(x(i) / 7) mod 4, counted from 0, of "
        f"{{letters}}, where {_X}",
        *(500, 4_000, _letters),
    ),
    Family(
        solutions.stock,
        "the total stock after {n} days plus the total unmet demand, where each row has the name of a good, its "
        "initial stock, the number of days between deliveries of that initial amount (3: the mornings of days 3, "
        "6, 9 ...), and the daily demand at noon, which is met in full if the stock suffices and otherwise "
        "counts in full as unmet: {rows}",
        *(30, 300, _rows),
    ),
)
UNSEEN = (
    Family(
        solutions.ant,
        "the number of black cells after {n} steps of an ant on a torus of {width} by {height} cells, all white at "
        "first, that starts at column {x} and row {y} facing up (rows count downwards); in each step it turns right on "
        "a white cell and left on a black one, changes the colour of the cell, and moves one cell ahead",
        *(1_000, 9_000),
        lambda draws: {
            **{"width": draws.between(12, 60), "height": draws.between(12, 60)},
            **{"x": draws.between(0, 11), "y": draws.between(0, 11)},
        },
    ),
    Family(
        solutions.coins,
        "the remainder, when divided by {m}, of the number of ways to pay {n} with coins of {values}, each "
        "usable any number of times, where order does not matter",
        *(500, 3_000),
        lambda draws: {
            "values": [draws.between(low, low + 8) for low in (2, 11, 20, 30)],
            "m": draws.between(10_000, 99_999),
        },
    ),
    Family(
        solutions.rising,
        f"the length of the longest strictly rising subsequence of x(1), ..., x({{n}}), where {_X}",
        *(1_000, 9_000, _generator),
    ),
    Family(
        solutions.square_chains,
        "how many of the {n} whole numbers that follow {start} lead to {goal}, when a number is replaced again and "
        "again by the sum of the squares of its digits, until it is 1 or 4",
        *(1_000, 4_000, lambda draws: {"start": draws.between(1, 60_000), "goal": draws.pick((1, 4))}),
    ),
)
FAMILIES = {family.name: family for family in (*KNOWN, *UNSEEN)}
