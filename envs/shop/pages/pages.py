"""The shop's pages as data; ``text.py`` writes them as text.

``clickables`` of a page maps what can be clicked, in small letters and in the original's order, to the option that the
click would set, or to None for a button or a link.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from manyturn.envs.shop.catalogue.catalogue import Product

WINDOW = 10  # products on a page of results
SEARCH, BACK, NEXT, PREVIOUS, BUY = "search", "back to search", "next >", "< prev", "buy now"
DETAILS = ("description", "features", "reviews")
Clickables = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Home:
    """The page with the search bar."""

    instruction: str

    def clickables(self) -> Clickables:
        return {SEARCH: None}


@dataclass(frozen=True, slots=True)
class Results:
    """One page of what a search found.

    Args:
        number: of the page, 1 for the first; there is no last one.
        total: how many products were found.
        products: those on this page.
        visited: ids of products that were looked at since the last visit to the search bar.
    """

    instruction: str
    query: str
    number: int
    total: int
    products: tuple[Product, ...]
    visited: Set[str]

    def clickables(self) -> Clickables:
        turning = (PREVIOUS, NEXT) if self.number > 1 else (NEXT,)
        return dict.fromkeys((BACK, *turning, *(product.id.lower() for product in self.products)))


@dataclass(frozen=True, slots=True)
class Item:
    """A product with its options.

    Args:
        query, number: the results that it was opened from.
        chosen: option name -> value.
    """

    instruction: str
    query: str
    number: int
    product: Product
    chosen: Mapping[str, str]

    def clickables(self) -> Clickables:
        """A value that is offered twice sets the later option."""
        buttons: Clickables = dict.fromkeys((BACK, PREVIOUS, *DETAILS, BUY))
        for name, values in self.product.options.items():
            buttons.update(dict.fromkeys(values, name))
        return buttons


@dataclass(frozen=True, slots=True)
class Detail:
    """More about a product: one of ``DETAILS``."""

    instruction: str
    product: Product
    name: str

    def clickables(self) -> Clickables:
        return {BACK: None, PREVIOUS: None}

    def body(self) -> tuple[str, ...]:
        """The paragraphs; there are no reviews."""
        if self.name == "description":
            return (self.product.description,)
        return self.product.features if self.name == "features" else ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The page after the purchase."""

    product: Product
    chosen: Mapping[str, str]
    reward: float

    def clickables(self) -> Clickables:
        return {}


Page = Home | Results | Item | Detail | Receipt
