"""Generated shops, by name."""

from dataclasses import dataclass
from typing import TypedDict

from manyturn.envs.shop.generated.product_generator import MOST_CATALOGUES, refuse_numbers
from manyturn.envs.shop.generated.product_kinds import KINDS


class AssortmentArguments(TypedDict, total=False):
    """The arguments of an ``Assortment``, as an environment takes them."""

    products: int
    kinds: int
    catalogue: int
    catalogues: int


@dataclass(frozen=True)
class Assortment:
    """The made shops that tasks are in.

    Args:
        products: how many a shop has, a multiple of 5 from 50 to 100,000.
        kinds: of how many kinds of goods, from 1 to 24.
        catalogue: the seed that the first shop is made from.
        catalogues: how many shops there are, made from this seed and the next ones.

    Raises:
        ValueError: a number is out of its range.
    """

    products: int = 1000
    kinds: int = len(KINDS)
    catalogue: int = 0
    catalogues: int = 1

    def __post_init__(self) -> None:
        refuse_numbers(self.products, self.kinds)
        if not 1 <= self.catalogues <= MOST_CATALOGUES:
            raise ValueError(f"catalogues is {self.catalogues}: it is from 1 to {MOST_CATALOGUES}")

    @property
    def seeds(self) -> range:
        """Of the shops."""
        return range(self.catalogue, self.catalogue + self.catalogues)
