"""WebShop's files: products, attributes and instructions, as the original program reads them.

The program and its lists are under the MIT licence (princeton-nlp/WebShop). The products' texts are Amazon's and come
with no licence, so none are here; the original's ``setup.sh`` fetches them.
"""

import hashlib
import itertools
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from manyturn.envs.registry import NeedsSetup
from manyturn.envs.shop.catalogue import Catalogue, Product
from manyturn.envs.shop.draws import Draws, KeyedDraws, OriginalDraws, price_limit
from manyturn.envs.shop.goals import NO_LIMIT, Goal

SOLD = 1000  # records of the file that the shop sells; the search index goes on until it has as many products
PRODUCTS, ATTRIBUTES, HUMAN = "items_shuffle_1000.json", "items_ins_v2_1000.json", "items_human_ins.json"
KINDS = {"synthetic": (PRODUCTS, ATTRIBUTES), "human": (PRODUCTS, ATTRIBUTES, HUMAN)}
_ORDER = 233  # the original's seed for shuffling the goals
_MEND = (
    "put {names} into a folder (setup.sh -d small of github.com/princeton-nlp/WebShop fetches them) and give "
    'data="FOLDER"'
)
Record = Mapping[str, Any]


class DataError(NeedsSetup):
    """The folder lacks a file, or a file is not what it should be; the text names the mend."""


class OfficialShop:
    """A catalogue and its goals, never changed after it is made. Raises DataError.

    Args:
        root: folder of the files.
        sha256: of the files.
        kind: ``synthetic`` or ``human`` goals.
        draws: where prices and price limits come from.

    Attributes:
        catalogue: the products.
        goals: in the original's order.
    """

    def __init__(self, root: Path, sha256: str, kind: str, draws: Draws):
        self.sha256 = sha256
        about = _table(root / ATTRIBUTES)
        products, extra = _products(_records(root / PRODUCTS), about, draws)
        self.catalogue = Catalogue(products, extra)
        try:
            if kind == "human":
                goals = list(_human_goals(products, _table(root / HUMAN), draws))
            else:
                goals = list(_synthetic_goals(products, about, draws))
        except (KeyError, TypeError, AttributeError) as error:
            raise _unreadable(root / (HUMAN if kind == "human" else ATTRIBUTES), error) from None
        if not goals:
            raise DataError(f"no product of {root} has an instruction: the files must be of one release")
        random.Random(_ORDER).shuffle(goals)
        self.goals = tuple(goals)


_SHOPS: WeakValueDictionary[tuple[str, str, int | None], OfficialShop] = WeakValueDictionary()


def load(folder: str | Path | None, kind: str, original: int | None = None) -> OfficialShop:
    """The shop of a folder; one in a process for each content of the files. Raises DataError.

    Args:
        folder: holds the official files of 1,000 products.
        kind: ``synthetic`` or ``human`` goals.
        original: seed of the run of the original whose prices and limits to repeat; default: drawn from each id.
    """
    needed = KINDS[kind]
    if folder is None:
        raise DataError(f"WebShop's files do not come with this package: {_MEND.format(names=', '.join(needed))}")
    root = Path(folder).expanduser().resolve()
    missing = ", ".join(name for name in needed if not (root / name).is_file())
    if missing:
        raise DataError(f"{root} has no {missing}: {_MEND.format(names=missing)}")
    stats = [(root / name).stat() for name in needed]
    return _loaded(root, kind, original, tuple((stat.st_mtime_ns, stat.st_size) for stat in stats))


@lru_cache(maxsize=4)
def _loaded(root: Path, kind: str, original: int | None, _when: tuple[tuple[int, int], ...]) -> OfficialShop:
    """The files are read again only when one has changed."""
    hashes = [hashlib.sha256((root / name).read_bytes()).hexdigest() for name in KINDS[kind]]
    sha256 = hashlib.sha256("".join(hashes).encode()).hexdigest()
    shop = _SHOPS.get((sha256, kind, original))
    if shop is None:
        shop = OfficialShop(root, sha256, kind, KeyedDraws() if original is None else OriginalDraws(original))
        _SHOPS[sha256, kind, original] = shop
    return shop


def _table(file: Path) -> Record:
    """A file that holds one JSON object."""
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise _unreadable(file, error) from None
    if not isinstance(found, dict):
        raise _unreadable(file, f"it holds a {type(found).__name__}, not an object")
    return found


def _records(file: Path) -> Iterator[Record]:
    """The objects of a file that holds one JSON list, one at a time: all at once take several times the memory."""
    decoder, space = json.JSONDecoder(), re.compile(r"[\s,]*")
    try:
        text = file.read_text(encoding="utf-8")
        spot = space.match(text, text.index("[") + 1).end()  # type: ignore[union-attr]
        while text[spot] != "]":
            record, spot = decoder.raw_decode(text, spot)
            yield record
            spot = space.match(text, spot).end()  # type: ignore[union-attr]
    except (ValueError, IndexError) as error:
        raise _unreadable(file, error) from None


def _unreadable(where: str | Path, why: Exception | str) -> DataError:
    why = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    return DataError(f"{where} is not as WebShop's files are ({why}): fetch the file again")


def _products(records: Iterable[Record], about: Record, draws: Draws) -> tuple[list[Product], list[Product]]:
    """The products sold, and those that only the search index knows.

    The original cuts the file after 1,000 records and then drops unusable ones; its index is made of the first 1,000
    usable ones.
    """
    kept: dict[str, Product] = {}
    sold: list[Product] = []
    for number, record in enumerate(records):
        name = record.get("asin") if isinstance(record, dict) else None
        if not isinstance(name, str):
            raise _unreadable(PRODUCTS, f"record {number} has no asin")
        if name == "nan" or len(name) > 10 or name in kept:
            continue
        if len(kept) == SOLD:
            break
        try:
            product, prices = _product(record, about.get(name, {}))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _unreadable(f"product {name} of {PRODUCTS}", error) from None
        kept[name] = product
        if number < SOLD:
            price = prices[0] if len(prices) == 1 else draws.price(name, *prices)
            sold.append(replace(product, price=price))
    here = {product.id for product in sold}
    return sold, [product for product in kept.values() if product.id not in here]


def _product(record: Record, about: Record) -> tuple[Product, list[float]]:
    """A product, and its price or the two ends of its range of prices."""
    prices = [float(re.sub(r"[^\d.]", "", text)) for text in (record.get("pricing") or "$100.0").split("$")[1:]][:2]
    features = record["small_description"]
    product = Product(
        id=record["asin"],
        title=record["name"],
        description=record["full_description"],
        features=tuple(features) if isinstance(features, list) else (features,),
        options=_options(record["customization_options"] or {}),
        attributes=tuple(about.get("attributes", ("DUMMY_ATTR",))),
        price=prices[0] if prices else float("nan"),
        price_tag=" to ".join(f"${price}" for price in prices),
        kind=record["query"].lower().strip(),
        path=record["product_category"],
        department=str(record["category"]),
    )
    if not prices:
        raise ValueError(f"no price in {record['pricing']!r}")
    for text in (product.title, product.description, product.path, *product.features, *product.attributes):
        if not isinstance(text, str):
            raise TypeError(f"{text!r:.40} is no text")
    return product, prices


def _options(offered: Record) -> dict[str, tuple[str, ...]]:
    options = {}
    for name, contents in offered.items():
        if contents is not None:
            values = (content["value"].strip().replace("/", " | ").lower() for content in contents)
            options[name.lower()] = tuple(values)
    return options


def _limit(draws: Draws, key: str, product: Product) -> tuple[float, str]:
    """A price limit and how the instruction says it."""
    limit = price_limit(draws, key, product.price)
    return (NO_LIMIT, "") if limit is None else (limit, f", and price lower than {limit:.2f} dollars")


def _human_goals(products: Sequence[Product], written: Record, draws: Draws) -> Iterator[Goal]:
    """One for each instruction that people wrote about a product."""
    for product in products:
        for number, record in enumerate(written.get(product.id, ())):
            attributes = tuple(record["instruction_attributes"])
            if attributes:
                limit, said = _limit(draws, f"{product.id} {number}", product)
                text = record["instruction"].strip(".") + said
                yield Goal(product, text, attributes, tuple(record["instruction_options"]), limit)


def _synthetic_goals(products: Sequence[Product], about: Record, draws: Draws) -> Iterator[Goal]:
    """For each product with an instruction, one for each combination of its options; all have one price limit."""
    for product in products:
        record = about.get(product.id, {})
        instruction, attributes = record.get("instruction"), tuple(record.get("instruction_attributes") or ())
        if instruction is None or not attributes:
            continue
        limit, said = _limit(draws, product.id, product)
        axes = [[(name, value) for value in product.options[name]] for name in sorted(product.options)]
        for options in itertools.product(*axes):
            chosen = ", and ".join(f"{name}: {value}" for name, value in options)
            text = f"{instruction} with {chosen}{said}" if chosen else f"{instruction}{said}"
            yield Goal(product, text, attributes, options, limit)
