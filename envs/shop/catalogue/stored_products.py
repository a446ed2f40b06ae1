"""Products on disk, made when asked for."""

from collections import deque
from collections.abc import Sequence
from typing import Any, overload
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from manyturn.envs.shop.catalogue.catalogue import Product
from manyturn.envs.shop.search.json_lines import JsonLines

_KEPT = 256  # products that stay made although nobody holds them


def line_of(product: Product) -> list[Any]:
    """A product without its price, as plain values."""
    texts = [product.id, product.title, product.description, product.features, product.options, product.attributes]
    return [*texts, product.price_tag, product.kind, product.path, product.department]


class StoredProducts(Sequence[Product]):
    """Products by number. Two that are held at one time and have one number are one object.

    Args:
        lines: [products] begin with ``line_of`` the product.
        prices: [products] in dollars.
    """

    def __init__(self, lines: JsonLines, prices: NDArray[np.float64]):
        self._lines, self._prices = lines, prices
        self._made: WeakValueDictionary[int, Product] = WeakValueDictionary()
        self._recent_products: deque[Product] = deque(maxlen=_KEPT)

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, number: int) -> Product: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Product, ...]: ...
    def __getitem__(self, number):
        if isinstance(number, slice):
            return tuple([self[place] for place in range(*number.indices(len(self)))])
        product = self._made.get(number)
        if product is None:
            name, title, description, features, options, attributes, *rest = self._lines[number]
            options = {option: tuple(values) for option, values in options.items()}
            texts = name, title, description, tuple(features), options, tuple(attributes)
            product = Product(*texts, float(self._prices[number]), *rest[:4])
            self._made[number] = product
            self._recent_products.append(product)
        return product
