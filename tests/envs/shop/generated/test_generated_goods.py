"""The goods of a made shop must be the same for ever, and rivals must differ in one thing that the pages tell."""

import os
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.shop.generated.product_generator import FAMILY, SHARES, Goods, goods
from manyturn.envs.shop.generated.product_kinds import KINDS
from manyturn.envs.shop.reward.reward import attributes_met

SIZES = st.integers(10, 60).map(lambda families: families * FAMILY)
SEEDS = st.integers(0, 2**40)
ATTRIBUTES = {kind.name: kind.attributes for kind in KINDS}


def fingerprint(stock: Goods) -> str:
    listed = [[product.id, product.document(), product.price_tag, product.path] for product in stock.catalogue.products]
    return digest(listed, dict(stock.of_split))


def test_the_catalogue_is_the_same_in_every_process_and_stays_what_it_was() -> None:
    imports = "import sys; sys.path.insert(0, sys.argv[1]); from test_generated_goods import *"
    code = f"{imports}; print(fingerprint(goods(7, 100)))"
    other = [sys.executable, "-c", code, os.path.dirname(__file__)]
    found = subprocess.run(other, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "1"}, check=True)
    assert found.stdout.strip() == fingerprint(goods(7, 100)) == PINNED


@settings(max_examples=8, deadline=None)
@given(SEEDS, SIZES)
def test_rivals_differ_in_one_thing_each(seed: int, size: int) -> None:
    for plain, title, below, option, price in goods(seed, size).families:
        names = {product.title.partition(" ")[2].partition(",")[0] for product in (plain, title, below, option, price)}
        assert len(names) == 1 and plain.kind == title.kind == below.kind == option.kind == price.kind
        for rival in (title, below):
            assert len(set(plain.attributes) - set(rival.attributes)) == 1 and rival.options == plain.options
        (shown,) = set(plain.attributes) - set(title.attributes)
        (hidden,) = set(plain.attributes) - set(below.attributes)
        assert shown in plain.title and hidden not in plain.title
        assert option.attributes == price.attributes == plain.attributes and price.options == plain.options
        assert all(set(values) - set(option.options[axis]) for axis, values in plain.options.items())
        assert price.price > 1.7 * max(other.price for other in (plain, title, below, option))


@settings(max_examples=4, deadline=None)
@given(SEEDS, SIZES)
def test_a_product_is_what_its_pages_say_and_nothing_else(seed: int, size: int) -> None:
    for product in goods(seed, size).catalogue.products:
        for attribute in ATTRIBUTES[product.kind]:
            assert attributes_met(product, (attribute,)) == ((1, 1) if attribute in product.attributes else (0, 0))
        pages = (product.title, *product.features, product.description)
        told = [sum(attribute in page for page in pages) for attribute in product.attributes]
        assert told == [1] * len(product.attributes) and 2 <= len(told) <= 5
        assert product.attributes[-1] in product.description
        amounts = [float(part.strip("$")) for part in product.price_tag.split(" to ")]
        assert product.price == amounts[-1] >= amounts[0] > 0 and len(amounts) <= 2
        assert all(2 <= len(values) == len(set(values)) for values in product.options.values())


@settings(max_examples=8, deadline=None)
@given(SEEDS, SIZES)
def test_every_family_belongs_to_one_split_and_every_split_has_one(seed: int, size: int) -> None:
    stock = goods(seed, size)
    numbers = [number for split in SHARES for number in stock.of_split[split]]
    assert sorted(numbers) == list(range(size // FAMILY)) and all(stock.of_split[split] for split in SHARES)
    assert len({product.id for product in stock.catalogue.products}) == size


@pytest.mark.parametrize("size", [0, 45, 52, 100_005])
def test_a_size_that_cannot_be_made_names_those_that_can(size: int) -> None:
    with pytest.raises(ValueError, match="multiple of 5 from 50 to 100,000"):
        goods(0, size)


@pytest.mark.parametrize("kinds", [1, 3, 24])
def test_no_other_kinds_are_sold_than_were_asked_for(kinds: int) -> None:
    assert len({product.kind for product in goods(3, 200, kinds).catalogue.products}) == kinds


@pytest.mark.parametrize("kinds", [0, 25])
def test_a_number_of_kinds_that_there_are_not_is_told(kinds: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 24"):
        goods(0, 100, kinds)


def test_products_of_a_seed_are_made_once() -> None:
    assert goods(12345, 1000) is goods(12345, 1000)


@pytest.mark.slow
def test_a_thousand_products_are_made_in_less_than_a_second() -> None:
    start = time.process_time()
    goods(12346, 1000)
    assert time.process_time() - start < 1


@pytest.mark.slow
def test_a_hundred_thousand_products_are_different_ones() -> None:
    stock = goods(0, 100_000)
    assert len({product.id for product in stock.catalogue.products}) == 100_000
    assert len({(product.title, product.price, product.description) for product in stock.catalogue.products}) > 99_000


PINNED = "bae8d796abc5a2a388fc60dadb8a08d3"
