"""WebShop's official shops: products and goals of 1,000 products, or of all that were prepared on disk."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np

from manyturn.envs.shop.catalogue.catalogue import Catalogue, Product
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.catalogue.price_draws import Draws, draws_of
from manyturn.envs.shop.webshop import file_preparation, goal_templates
from manyturn.envs.shop.webshop.goal_templates import Goals, GoalTemplate, Splits
from manyturn.envs.shop.webshop.hash_cache import recorded_hashes
from manyturn.envs.shop.webshop.json_stream import array_items
from manyturn.envs.shop.webshop.records import (
    ALL_PRODUCTS,
    DataError,
    Record,
    files_of,
    product_of,
    table,
    unreadable,
    usable,
)

SOLD = 1000  # records of the small file that the shop sells; the index goes on until it has as many products
MOST_GOALS = 1_000_000  # of a product whose goals are all held in memory


@dataclass(frozen=True, eq=False)
class OfficialShop:
    """A catalogue and its goals, never changed after it is made.

    Args:
        sha256: of the files.
        catalogue: the products.
        goals: in the original's order.
        splits: split -> places among the goals, ascending.
    """

    sha256: str
    catalogue: Catalogue
    goals: Sequence[Goal]
    splits: Splits


# One content makes two shops: of the files of 1,000 products only so many records are sold.
_SHOPS: WeakValueDictionary[tuple[str, str, int | None, bool], OfficialShop] = WeakValueDictionary()


def load(folder: str | Path | None, kind: str, original: int | None = None) -> OfficialShop:
    """The shop of a folder; one in a process for each content of the files. Raises DataError.

    Args:
        folder: holds the official files of 1,000 products, or of all, which must have been prepared.
        kind: ``synthetic`` or ``human`` goals.
        original: seed of the run of the original whose prices and limits to repeat; default: drawn from each id.
    """
    files = files_of(folder, kind)
    return _loaded(files, kind, original, tuple((s.st_mtime_ns, s.st_size) for s in (file.stat() for file in files)))


@lru_cache(maxsize=4)
def _loaded(
    files: tuple[Path, ...], kind: str, original: int | None, _when: tuple[tuple[int, int], ...]
) -> OfficialShop:
    """The files are read again only when one has changed."""
    full = files[0].name == ALL_PRODUCTS
    hashes = recorded_hashes(files) if full else [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    sha256 = hashlib.sha256("".join(hashes).encode()).hexdigest()
    shop = _SHOPS.get((sha256, kind, original, full))
    if shop is None:
        if full:
            shop = OfficialShop(sha256, *file_preparation.opened(files, hashes, kind, original))
        else:
            shop = _read(files, sha256, kind, original)
        _SHOPS[sha256, kind, original, full] = shop
    return shop


def _read(files: tuple[Path, ...], sha256: str, kind: str, original: int | None) -> OfficialShop:
    draws, about = draws_of(original), table(files[1])
    products, extra = _products(files[0], about, draws)
    ids = [product.id for product in products]
    try:
        all_templates = list(_templates(ids, kind, table(files[2]) if kind == "human" else about))
    except (KeyError, TypeError, AttributeError) as error:
        raise unreadable(files[2 if kind == "human" else 1], error) from None
    if not all_templates:
        raise DataError(f"no product of {files[0].parent} has an instruction: the files must be of one release")
    limits = goal_templates.limits_of(all_templates, [product.price for product in products], draws)
    counts = np.array(_counts(all_templates, products, files[0]))
    order = goal_templates.shuffled(int(counts.sum()))
    catalogue = Catalogue(products, extra)
    goals = tuple(Goals(catalogue.products, all_templates, counts, limits, order))
    if original is not None:
        return OfficialShop(sha256, catalogue, goals, goal_templates.original_splits(len(order)))
    by_product = goal_templates.product_splits((ids[template.product] for template in all_templates), counts, order)
    return OfficialShop(sha256, catalogue, goals, by_product)


def _counts(templates: Sequence[GoalTemplate], products: Sequence[Product], file: Path) -> list[int]:
    """Number of goals of each template. Raises DataError if they are too many to make."""
    counts = [goal_templates.count(template, products[template.product]) for template in templates]
    for template, count in zip(templates, counts, strict=True):
        if count > MOST_GOALS:
            product = f"product {products[template.product].id} of {file}"
            raise unreadable(product, f"its options make more than {MOST_GOALS:,} goals")
    return counts


def _templates(ids: Sequence[str], kind: str, record: Record) -> Iterator[GoalTemplate]:
    if kind == "human":
        return goal_templates.human_templates(ids, record)
    records = (record.get(name, {}) for name in ids)
    return goal_templates.synthetic_templates(ids, map(goal_templates.instruction_of, records))


def _products(file: Path, about: Record, draws: Draws) -> tuple[list[Product], list[Product]]:
    """The products sold, and those that only the search index knows.

    The original cuts the file after 1,000 records and then drops unusable ones; its index is made of the first 1,000
    usable ones.
    """
    sold: list[Product] = []
    extra: list[Product] = []
    for number, record in usable(array_items(file), file):
        if len(sold) + len(extra) == SOLD:
            break
        product, ends = product_of(record, about.get(record["asin"], {}), file)
        if number < SOLD:
            sold.append(replace(product, price=ends[0] if len(ends) == 1 else draws.price(product.id, *ends)))
        else:
            extra.append(product)
    return sold, extra
