"""The shop's goods: products, and ways to find them. Made once, never changed, shared by all episodes of a process."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.shop.search import posting_lists
from manyturn.envs.shop.search.bm25_index import Index
from manyturn.envs.shop.search.posting_lists import PostingsBuilder

FOUND = 50  # products that a search returns at most
_REMEMBERED = 500  # characters of the longest query whose result is kept


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Product:
    """One product.

    Args:
        id: unique, such as ``B08GFNJN5R``.
        title: its name.
        description: one text.
        features: bullet points.
        options: option name -> values to choose from, both in small letters.
        attributes: what it is said to be, such as ``machine wash``; no page shows the list.
        price: what is paid, in dollars.
        price_tag: what the pages say, such as ``$10.06 to $49.31``.
        kind: the search under which it was found, such as ``women's pumps``; two products of a kind are of one type.
        path: categories from wide to narrow, joined by `` › ``.
        department: the widest group, such as ``fashion``.
    """

    id: str
    title: str
    description: str
    features: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    price: float
    price_tag: str
    kind: str
    path: str
    department: str

    def document(self) -> str:
        """Searched text of a product: title, description, first bullet point, options."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.title, self.description, *self.features[:1], options]).lower()

    def groups(self) -> list[str]:
        """The browsing queries that show this product."""
        return [
            f"<c> {self.department}",
            f"<q> {self.kind}",
            *(f"<a> {name}" for name in dict.fromkeys(self.attributes)),
        ]


class SearchResults(Sequence[Product]):
    """Products that answer a query, best first, made when asked for.

    Args:
        catalogue: that was searched.
        numbers: the products' places in it.
    """

    def __init__(self, catalogue: "Catalogue", numbers: NDArray[np.integer]):
        self._catalogue, self._numbers = catalogue, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Product: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Product, ...]: ...
    def __getitem__(self, index):
        products = self._catalogue.products
        if isinstance(index, slice):
            return tuple([products[number] for number in self._numbers[index].tolist()])
        return products[int(self._numbers[index])]

    def __contains__(self, product: object) -> bool:
        return isinstance(product, Product) and len(self._spots(product)) > 0

    def index(self, product: Product) -> int:  # type: ignore[override]
        """The place of a product among these. Raises ValueError if it is not among them."""
        spots = self._spots(product)
        if not len(spots):
            raise ValueError(f"{product.id} was not found")
        return int(spots[0])

    def _spots(self, product: Product) -> NDArray[np.intp]:
        """By number, so that none of the others has to be made."""
        return np.flatnonzero(self._numbers == self._catalogue.index.number(product.id))


class Catalogue:
    """Products and the search engine over them.

    A query that begins with a word in angle brackets browses instead: ``<r>`` shows 50 products by lot (which ones
    depends on the whole query alone), ``<a> ATTRIBUTE``, ``<c> DEPARTMENT`` and ``<q> KIND`` all that are so.

    Args:
        products: the goods, in the order in which browsing shows them.
        also_indexed: products that the search engine knows and the shop does not sell; they take up places among the
            best 50 and are left out of the results.
    """

    def __init__(self, products: Sequence[Product], also_indexed: Iterable[Product] = ()):
        products = tuple(products)
        if len({product.id for product in products}) < len(products):
            raise ValueError("two products have one id: give each an id of its own")
        groups = PostingsBuilder()
        for number, product in enumerate(products):
            groups.add(number, dict.fromkeys(product.groups(), 1))
        texts = {product.id: product.document() for product in (*products, *also_indexed)}
        self._take(products, Index(texts), groups.finish())

    @classmethod
    def opened(cls, folder: Path, products: Sequence[Product]) -> "Catalogue":
        """The catalogue whose index ``write_catalogue`` put into a folder, mapped, over the products in their order."""
        catalogue = cls.__new__(cls)
        catalogue._take(products, Index.opened(folder / "index"), posting_lists.opened(folder / "groups"))
        return catalogue

    def _take(self, products: Sequence[Product], index: Index, groups: posting_lists.Postings) -> None:
        self.products, self.index, self._groups = products, index, groups
        self._remembered = lru_cache(maxsize=1024)(self._find)

    def __getitem__(self, product_id: str) -> Product:
        number = self.index.number(product_id)
        if number is None or number >= len(self.products):
            raise KeyError(product_id)
        return self.products[number]

    def search(self, query: str) -> SearchResults:
        """The products that answer a query, best first."""
        return self._remembered(query) if len(query) <= _REMEMBERED else self._find(query)

    def _find(self, query: str) -> SearchResults:
        first, _, rest = query.partition(" ")
        match first:
            case "<r>":
                numbers = generator("products by lot", query).permutation(len(self.products))[:FOUND]
            case "<a>" | "<q>":
                numbers = self._groups.of(f"{first} {rest.strip()}")
            case "<c>":
                numbers = self._groups.of(f"<c> {rest.partition(' ')[0]}")
            case _:
                numbers, _ = self.index.ranked(query, FOUND)
                numbers = numbers[numbers < len(self.products)]
        return SearchResults(self, numbers)


def write_catalogue(folder: Path, products: Iterable[Product]) -> None:
    """Index products as they come, in memory that hardly grows with their number.

    Args:
        folder: to be made; ``Catalogue.opened`` reads it.
        products: with ids of their own.
    """
    folder.mkdir()
    groups = PostingsBuilder(folder / "groups")

    def documents() -> Iterator[tuple[str, str]]:
        for number, product in enumerate(products):
            groups.add(number, dict.fromkeys(product.groups(), 1))
            yield product.id, product.document()

    Index(documents(), folder / "index")
    groups.finish()
