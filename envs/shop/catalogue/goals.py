"""Goal of a shopping task."""

from dataclasses import dataclass

from manyturn.envs.shop.catalogue.catalogue import Product

NO_LIMIT = 1_000_000.0  # dollars


@dataclass(frozen=True, slots=True)
class Goal:
    """An instruction and what it means.

    Args:
        product: the product it was written about; others may serve as well.
        instruction: the text that the agent reads.
        attributes: what the product must be; at least one.
        options: what must be chosen: values, or pairs of option name and value.
        price_limit: the most it may cost, in dollars.
        query: words of the instruction that find the product; None if none are known to.
    """

    product: Product
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str | tuple[str, str], ...]
    price_limit: float
    query: str | None = None
