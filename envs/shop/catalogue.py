"""The shop's goods: products, and ways to find them. Made once, never changed, shared by all episodes of a process."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from manyturn.envs.keys import generator
from manyturn.envs.shop.index import Index

FOUND = 50  # products that a search returns at most
_REMEMBERED = 500  # characters of the longest query whose result is kept


@dataclass(frozen=True, slots=True)
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
        """What a search looks through: title, description, first bullet point, options."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.title, self.description, *self.features[:1], options]).lower()


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
        self.products = tuple(products)
        self._by_id = {product.id: product for product in self.products}
        if len(self._by_id) < len(self.products):
            raise ValueError("two products have one id: give each an id of its own")
        self.index = Index({product.id: product.document() for product in (*self.products, *also_indexed)})
        self._remembered = lru_cache(maxsize=1024)(self._find)

    def __getitem__(self, product_id: str) -> Product:
        return self._by_id[product_id]

    def search(self, query: str) -> tuple[Product, ...]:
        """The products that answer a query, best first."""
        return self._remembered(query) if len(query) <= _REMEMBERED else self._find(query)

    def _find(self, query: str) -> tuple[Product, ...]:
        first, _, rest = query.partition(" ")
        match first:
            case "<r>":
                lot = generator("products by lot", query).permutation(len(self.products))[:FOUND]
                return tuple(self.products[int(number)] for number in lot)
            case "<a>":
                return tuple(product for product in self.products if rest.strip() in product.attributes)
            case "<c>":
                department = rest.partition(" ")[0]
                return tuple(product for product in self.products if product.department == department)
            case "<q>":
                return tuple(product for product in self.products if product.kind == rest.strip())
        found = (self._by_id.get(name) for name, _ in self.index.search(query, FOUND))
        return tuple(product for product in found if product is not None)
