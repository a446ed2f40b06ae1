"""WebShop's files as products, as the original program reads them.

The program and its lists are under the MIT licence (princeton-nlp/WebShop). The products' texts are Amazon's and come
with no licence, so none are here; the original's ``setup.sh`` fetches them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from sys import intern
from typing import Any

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.shop.catalogue.catalogue import Product

PRODUCTS, ATTRIBUTES, HUMAN = "items_shuffle_1000.json", "items_ins_v2_1000.json", "items_human_ins.json"
ALL_PRODUCTS, ALL_ATTRIBUTES = "items_shuffle.json", "items_ins_v2.json"
KINDS = ("synthetic", "human")  # of goals
SOURCE = "setup.sh -d {size} of github.com/princeton-nlp/WebShop fetches them"
Record = Mapping[str, Any]


class DataError(NeedsSetup):
    """The folder lacks a file, or a file is not what it should be; the text names the fix."""


def unreadable(where: str | Path, why: Exception | str) -> DataError:
    why = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    return DataError(f"{where} is not as WebShop's files are ({why}): fetch the file again")


def files_of(folder: str | Path | None, kind: str) -> tuple[Path, ...]:
    """The files in a folder that the shop is made of: products, attributes, instructions by people if asked for.

    Args:
        folder: holds the files of 1,000 products, or of all.
        kind: of goals.
    """
    if folder is None:
        names = ", ".join((PRODUCTS, ATTRIBUTES, HUMAN)[: 3 if kind == "human" else 2])
        raise DataError(
            f"WebShop's files do not come with this package: put {names} into a folder "
            f'({SOURCE.format(size="small")}) and give data="FOLDER"'
        )
    root = Path(folder).expanduser().resolve()
    small, full = (root / PRODUCTS).is_file(), (root / ALL_PRODUCTS).is_file()
    if small and full:
        raise DataError(f"{root} holds {PRODUCTS} and {ALL_PRODUCTS}: put each with its attributes into its own folder")
    needed = (ALL_PRODUCTS, ALL_ATTRIBUTES) if full else (PRODUCTS, ATTRIBUTES)
    files = [root / name for name in (*needed, HUMAN)][: 3 if kind == "human" else 2]
    missing = ", ".join(file.name for file in files if not file.is_file())
    if missing:
        source = SOURCE.format(size="all" if full else "small")
        raise DataError(f'{root} has no {missing}: put the file there ({source}) and give data="FOLDER"')
    return tuple(files)


def usable(records: Iterable[Any], file: Path) -> Iterator[tuple[int, Record]]:
    """The records that become products, with their numbers in the file. Raises DataError."""
    names = set()
    try:
        for number, record in enumerate(records):
            name = record.get("asin") if isinstance(record, dict) else None
            if not isinstance(name, str):
                raise unreadable(file, f"record {number} has no asin")
            if name != "nan" and len(name) <= 10 and name not in names:
                names.add(name)
                yield number, record
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise unreadable(file, error) from None


def product_of(record: Record, about: Record, file: Path) -> tuple[Product, list[float]]:
    """A product, and its price or the two ends of its range of prices. Raises DataError.

    Args:
        record: of the file of products.
        about: of the file of attributes.
        file: that the record is from.
    """
    try:
        return _product_of(record, about)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unreadable(f"product {record['asin']} of {file}", error) from None


def _product_of(record: Record, about: Record) -> tuple[Product, list[float]]:
    prices = [float(re.sub(r"[^\d.]", "", text)) for text in (record.get("pricing") or "$100.0").split("$")[1:]][:2]
    if not prices:
        raise ValueError(f"no price in {record['pricing']!r}")
    features = record["small_description"]
    product = Product(
        id=record["asin"],
        title=record["name"],
        description=record["full_description"],
        features=tuple(features) if isinstance(features, list) else (features,),
        options=_options(record["customization_options"] or {}),
        attributes=tuple(map(intern, about.get("attributes", ("DUMMY_ATTR",)))),  # thousands share a few hundred
        price=prices[0],
        price_tag=" to ".join(f"${price}" for price in prices),
        kind=intern(record["query"].lower().strip()),
        path=intern(record["product_category"]),
        department=str(record["category"]),
    )
    for text in (product.title, product.description, product.path, *product.features, *product.attributes):
        if not isinstance(text, str):
            raise TypeError(f"{text!r:.40} is no text")
    return product, prices


def _options(offered: Record) -> dict[str, tuple[str, ...]]:
    options = {}
    for name, contents in offered.items():
        if contents is not None:
            values = (content["value"].strip().replace("/", " | ").lower() for content in contents)
            options[intern(name.lower())] = tuple(map(intern, values))
    return options


def table(file: Path) -> Record:
    """A file that holds one JSON object. Raises DataError."""
    try:
        rows = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise unreadable(file, error) from None
    if not isinstance(rows, dict):
        raise unreadable(file, f"it holds a {type(rows).__name__}, not an object")
    return rows
