"""Catalogues for the tests: a small one made here, and the one that recordings of the original were made with."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needs_files import data

from manyturn.envs.shop.webshop.records import ATTRIBUTES, HUMAN, PRODUCTS

COLOURS, KINDS = ("Red", "Dark Grey", "Navy Blue"), ("Rain Boots", "Table Lamps", "Women's Pumps", "Herbal Tea")


def record(asin: str, **changes: Any) -> dict[str, Any]:
    """A product as the official file has it."""
    return {
        "asin": asin,
        "name": f"Zephira Lamp {asin}",
        "full_description": "",
        "small_description": [],
        "customization_options": "",
        "pricing": "$20.00",
        "query": "Lamps",
        "product_category": "Home › Light › Lamps",
        "category": "home",
        **changes,
    }


def options(**values: list[str]) -> dict[str, Any]:
    return {name: [{"value": value} for value in some] for name, some in values.items()}


def generated() -> list[dict[str, Any]]:
    """Products that differ in kind, colour and one attribute."""
    found = []
    for number, (kind, colour, trait) in enumerate(itertools.product(KINDS, COLOURS, ("soft", "easy clean"))):
        changes = {
            "name": f"Kesso {kind}, {colour} and {trait.title()}",
            "full_description": f"A {kind.lower()} for {trait} days – no. {number} ★",
            "small_description": ["MADE to last. ", "  "],
            "customization_options": options(Size=["Large", "X-Large", '7.5" wide'], Color=[colour, "White/Tan"]),
            "pricing": "$10.06 - $49.31" if number % 3 else f"${number}9.50",
            "query": kind,
            "product_category": f"Home › {kind} › All {kind}",
        }
        found.append(record(f"B{number:09}", **changes))
    return found


def write(folder: Path, products: list[dict[str, Any]]) -> Path:
    """The three official files: every product has one synthetic instruction and one by a person."""
    about, written = {}, {}
    for product in products:
        trait = "easy clean" if "Easy" in product["name"] else "soft"
        attributes = {"attributes": [trait, "high quality"], "instruction_attributes": [trait]}
        about[product["asin"]] = attributes | {"instruction": f"Find me {trait} {product['query'].lower()}"}
        chosen = [v["value"].lower() for v in (product["customization_options"] or {}).get("Size", ())[1:2]]
        said = f"i want {trait} {product['query'].lower()} in {product['asin'][-2:]}."
        goal = {"instruction": said, "instruction_attributes": [trait], "instruction_options": chosen}
        written[product["asin"]] = [goal, goal | {"instruction_attributes": []}]
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in ((PRODUCTS, products), (ATTRIBUTES, about), (HUMAN, written)):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a catalogue of 24 products."""
    return write(tmp_path_factory.mktemp("small"), generated())


@pytest.fixture
def shop_of(tmp_path: Path) -> Callable[..., Path]:
    """Folder of a catalogue of the products described, each a change of a plain lamp."""

    def make(*changes: dict[str, Any]) -> Path:
        return write(tmp_path, [record(**{"asin": f"B{number:09}", **change}) for number, change in enumerate(changes)])

    return make


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the catalogue behind the recordings, under the official names."""
    sources = {PRODUCTS: f"standin_{PRODUCTS}", ATTRIBUTES: ATTRIBUTES, HUMAN: f"standin_{HUMAN}"}
    place = data("webshop", *sources.values())
    folder = tmp_path_factory.mktemp("recorded")
    for name, source in sources.items():
        (folder / name).symlink_to((place / source).resolve())
    return folder
