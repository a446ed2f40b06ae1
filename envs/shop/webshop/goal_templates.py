"""Goals of the official files, made when asked for: a few instructions stand for millions of goals."""

import math
import random
from array import array
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.task import SPLITS, split_of
from manyturn.envs.shop.catalogue.catalogue import Product
from manyturn.envs.shop.catalogue.goals import NO_LIMIT, Goal
from manyturn.envs.shop.catalogue.price_draws import Draws, price_limit

_ORDER = 233  # the original's seed for shuffling the goals
_TEST, _VALIDATION = 500, 1000  # goals of the original's splits, in its order
Splits = Mapping[str, Sequence[int] | NDArray[np.int32]]
"""Split -> places among the goals, ascending."""


class GoalTemplate(NamedTuple):
    """An instruction about a product.

    Args:
        product: its number in the catalogue.
        key: by which the price limit is drawn.
        text: without the price limit.
        attributes: what the product must be.
        options: values to choose; None makes one goal of each combination of the product's options.
    """

    product: int
    key: str
    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] | None


def human_templates(ids: Iterable[str], written: Mapping[str, Any]) -> Iterator[GoalTemplate]:
    """One for each instruction that people wrote about a product.

    Args:
        ids: of the products.
        written: the file of instructions.
    """
    for number, name in enumerate(ids):
        for place, record in enumerate(written.get(name, ())):
            attributes = tuple(record["instruction_attributes"])
            if attributes:
                options = tuple(record["instruction_options"])
                yield GoalTemplate(number, f"{name} {place}", record["instruction"].strip("."), attributes, options)


def synthetic_templates(
    ids: Iterable[str], instructions: Iterable[tuple[str | None, Sequence[str]]]
) -> Iterator[GoalTemplate]:
    """One for each product with an instruction and attributes; all its goals have one price limit."""
    for number, (name, (text, attributes)) in enumerate(zip(ids, instructions, strict=True)):
        if text is not None and attributes:
            yield GoalTemplate(number, name, text, tuple(attributes), None)


def instruction_of(about: Mapping[str, Any]) -> tuple[str | None, Sequence[str]]:
    """The synthetic instruction of a product and the attributes that it asks for, from the file of attributes."""
    return about.get("instruction"), about.get("instruction_attributes") or ()


def count(template: GoalTemplate, product: Product) -> int:
    """Number of goals that a template makes."""
    return 1 if template.options is not None else math.prod(map(len, product.options.values()))


def limits_of(
    templates: Iterable[GoalTemplate], prices: Sequence[float] | NDArray[np.float64], draws: Draws
) -> NDArray[np.float64]:
    """[templates] price limits in dollars, drawn in the order of the templates."""
    drawn = (price_limit(draws, template.key, float(prices[template.product])) for template in templates)
    return np.array([NO_LIMIT if limit is None else limit for limit in drawn])


def shuffled(size: int) -> NDArray[np.int32]:
    """[size] the original's order of its goals."""
    order: MutableSequence[int] = array("i", range(size))
    random.Random(_ORDER).shuffle(order)
    return np.array(order, np.int32)


def original_splits(size: int) -> dict[str, range]:
    """Split -> places of goals. One product's goals may lie in all of them."""
    ends = {"test": (0, _TEST), "validation": (_TEST, _TEST + _VALIDATION), "train": (_TEST + _VALIDATION, size)}
    return {split: range(*ends[split])[: max(size - ends[split][0], 0)] for split in SPLITS}


def product_splits(ids: Iterable[str], counts: NDArray[np.int64], order: NDArray[np.int32]) -> dict[str, NDArray]:
    """Split -> places of goals; all goals of a product are in one.

    Args:
        ids: of the templates' products.
        counts: [templates] of goals.
        order: [goals] see ``shuffled``.
    """
    codes = np.array([SPLITS.index(split_of(digest("webshop product", name))) for name in ids], np.int8)
    placed = np.repeat(codes, counts)[order]
    return {split: np.flatnonzero(placed == code).astype(np.int32) for code, split in enumerate(SPLITS)}


class Goals(Sequence[Goal]):
    """The goals of templates, in the original's order.

    Args:
        products: of the catalogue.
        templates: what the goals come from.
        counts: [templates] of goals.
        limits: [templates] in dollars.
        order: [goals] place in the order of the templates.
    """

    def __init__(
        self,
        products: Sequence[Product],
        templates: Sequence[GoalTemplate],
        counts: NDArray[np.int64],
        limits: NDArray[np.float64],
        order: NDArray[np.int32],
    ):
        self._products, self._templates, self._limits, self._order = products, templates, limits, order
        self._starts = np.cumsum(counts) - counts

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Goal: ...
    @overload
    def __getitem__(self, index: slice) -> list[Goal]: ...
    def __getitem__(self, index):
        template = self._order[index]
        return (
            [self._make(place) for place in template.tolist()]
            if isinstance(index, slice)
            else self._make(int(template))
        )

    def _make(self, place: int) -> Goal:
        number = int(self._starts.searchsorted(place, "right")) - 1
        template, limit = GoalTemplate(*self._templates[number]), float(self._limits[number])
        product, options, text = self._products[template.product], template.options, template.text
        if options is None:
            options = _combination(product, place - int(self._starts[number]))
            chosen = ", and ".join(f"{name}: {value}" for name, value in options)
            text = f"{text} with {chosen}" if chosen else text
        if limit != NO_LIMIT:
            text += f", and price lower than {limit:.2f} dollars"
        return Goal(product, text, tuple(template.attributes), tuple(options), limit)


def _combination(product: Product, number: int) -> list[tuple[str, str]]:
    """The choice of each option, by name, with this number among all combinations; the last option turns fastest."""
    chosen = []
    for name in sorted(product.options, reverse=True):
        values = product.options[name]
        number, spot = divmod(number, len(values))
        chosen.append((name, values[spot]))
    return chosen[::-1]
