"""The catalogue of a generated shop: families of five rivals that differ in one thing each.

A family is a plain product and four rivals of it: one with another attribute in the title, one with another attribute
that only a page below the product's page tells, one that lacks some values of an option, and one that costs too much.
So whatever product a goal is about, others look right and are not.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import TypeVar

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.shop.catalogue.catalogue import Catalogue, Product
from manyturn.envs.shop.generated.product_kinds import KINDS, Kind

T = TypeVar("T")

FAMILY = 5
FEWEST, MOST = 50, 100_000  # products
SHARES = {"train": 7, "validation": 1, "test": 1, "test_unseen": 1}  # of ten families
MOST_CATALOGUES = 256  # they stay made
_SPREAD = 0.35  # of the logarithm of prices
_BRANDS = """
alvona brisko calmera dorvik elfrin fenwick galora harlo ivento jorvan kesso lumeva mirado nordal orlix pavano quorra
rivelle solvik tamsin ulvane velloro wexford xandro yarrow zephira""".split()
_MADE_FOR = "every day, beginners, busy weeks, long trips, small homes, guests, weekends, students".split(", ")
_REMARKS = "made to last, two years of warranty, a favorite of many, shipped within a day, now new".split(", ")


@dataclass(frozen=True)
class Goods:
    """A catalogue and its families.

    Args:
        catalogue: the products.
        families: each five products that differ in one thing each.
        of_split: split -> the families whose products its goals are about; no family is in two splits.
        having: kind and attribute -> the products that are so.
    """

    catalogue: Catalogue
    families: tuple[tuple[Product, ...], ...]
    of_split: Mapping[str, tuple[int, ...]]
    having: Mapping[tuple[str, str], tuple[Product, ...]]


def refuse_numbers(size: int, kinds: int) -> None:
    """Raises ValueError for goods that cannot be made; see ``goods``."""
    if not 1 <= kinds <= len(KINDS):
        raise ValueError(f"kinds must be from 1 to {len(KINDS)}, not {kinds}")
    if not FEWEST <= size <= MOST or size % FAMILY:
        raise ValueError(f"products must be a multiple of {FAMILY} from {FEWEST} to {MOST:,}, not {size}")


@lru_cache(maxsize=MOST_CATALOGUES)
def goods(seed: int, size: int, kinds: int = len(KINDS)) -> Goods:
    """The goods of a seed, one object in a process; a second for 1,000 products at most.

    Args:
        size: how many products.
        kinds: of how many kinds.
    """
    refuse_numbers(size, kinds)
    codes = _codes(seed, size)
    count, first = size // FAMILY, Draws("shop kinds", seed, size).below(len(KINDS))
    families = tuple(
        _family(Draws("shop family", seed, size, number), KINDS[(first + number) % kinds], codes[number::count])
        for number in range(count)
    )
    having: dict[tuple[str, str], list[Product]] = defaultdict(list)
    for family in families:
        for product in family:
            for attribute in product.attributes:
                having[product.kind, attribute].append(product)
    order = sorted(range(count), key=lambda number: digest("shop split", seed, size, number))
    catalogue = Catalogue([product for family in families for product in family])
    return Goods(catalogue, families, _parted(order), {key: tuple(members) for key, members in having.items()})


def _parted(order: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """The families of each split: of ten in a row each split gets its share, so that none is left without."""
    names = [split for split, share in SHARES.items() for _ in range(share)]
    parts: dict[str, list[int]] = {split: [] for split in SHARES}
    for place, number in enumerate(order):
        parts[names[-1 - place % len(names)]].append(number)
    return {split: tuple(numbers) for split, numbers in parts.items()}


def _codes(seed: int, size: int) -> list[str]:
    """Different ids of letters and digits in turn, as short as the size of the catalogue allows."""
    letters, digits = "bcdfghjkmnpqrstvwxz", "23456789"
    pairs = [letter + digit for letter in letters for digit in digits]
    length = math.ceil(math.log(1.5 * size, len(pairs)))
    numbers, draws = dict[int, None](), Draws("shop codes", seed, size)
    while len(numbers) < size:
        numbers[draws.below(len(pairs) ** length)] = None
    return ["".join(pairs[number // len(pairs) ** place % len(pairs)] for place in range(length)) for number in numbers]


# ---- one family ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    """Common properties of rivals."""

    kind: Kind
    head: str
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    cents: int


def some(draws: Draws, items: Sequence[T], count: int) -> list[T]:
    """Different ones of the items, in an order by lot."""
    left = list(items)
    return [left.pop(draws.below(len(left))) for _ in range(count)]


def _family(draws: Draws, kind: Kind, codes: Sequence[str]) -> tuple[Product, ...]:
    pool = some(draws, kind.attributes, len(kind.attributes))
    count = draws.between(2, 5)
    attributes, others = tuple(pool[:count]), pool[count:]
    shown = in_title(count)
    options = {axis: _offered(values, _some_values(draws, values)) for axis, values in kind.axes.items()}
    cents = round(100 * kind.price * math.exp(_SPREAD * NormalDist().inv_cdf((draws.below(9999) + 1) / 10_000)))
    plan = _Plan(kind, draws.pick(kind.heads), attributes, options, cents)
    titles, pages = draws.below(shown), draws.between(shown, count - 1)
    brands = some(draws, _BRANDS, FAMILY)
    variants = (
        plan,
        replace(plan, attributes=(*attributes[:titles], others[0], *attributes[titles + 1 :])),
        replace(plan, attributes=(*attributes[:pages], others[1], *attributes[pages + 1 :])),
        replace(plan, options=_lacking(draws, plan)),
        replace(plan, cents=cents * draws.between(200, 300) // 100),
    )
    return tuple(map(_product, [draws] * FAMILY, variants, brands, codes))


def in_title(count: int) -> int:
    """Number of attributes in a product's title; the last one stands in the description, others in features.

    >>> [in_title(count) for count in (2, 3, 4, 5)]
    [1, 1, 2, 3]
    """
    return max(1, count - 2)


def _some_values(draws: Draws, values: Sequence[str]) -> list[str]:
    """Two to four values, never all."""
    return some(draws, values, draws.between(2, min(4, len(values) - 1)))


def _offered(values: Sequence[str], chosen: Sequence[str]) -> tuple[str, ...]:
    """In the order of the axis, so that sizes stand as they do in shops."""
    return tuple(value for value in values if value in chosen)


def _lacking(draws: Draws, plan: _Plan) -> dict[str, tuple[str, ...]]:
    """The options with half of the values of each axis replaced by others, if there are any."""
    options = {}
    for axis, values in plan.options.items():
        half = some(draws, values, len(values) // 2)
        fresh = [value for value in plan.kind.axes[axis] if value not in values]
        new = some(draws, fresh, min(len(fresh), len(values) - len(half)))
        options[axis] = _offered(plan.kind.axes[axis], half + new)
    return options


def _product(draws: Draws, plan: _Plan, brand: str, code: str) -> Product:
    """A plan as a product; a range of prices is paid at its upper end, which the pages show."""
    kind, attributes = plan.kind, plan.attributes
    shown = in_title(len(attributes))
    cents = plan.cents * draws.between(90, 100) // 100
    low = cents * draws.between(60, 90) // 100 if draws.below(6) == 0 else None
    tag = f"${cents / 100:.2f}"
    return Product(
        id=code,
        title=", ".join([f"{brand} {plan.head}", *attributes[:shown]]),
        description=f"for {draws.pick(_MADE_FOR)}, {attributes[-1]}.",
        features=(draws.pick(_REMARKS), *attributes[shown:-1]),
        options=plan.options,
        attributes=attributes,
        price=cents / 100,
        price_tag=tag if low is None else f"${low / 100:.2f} to {tag}",
        kind=kind.name,
        path=" › ".join(kind.path),
        department=kind.department,
    )
