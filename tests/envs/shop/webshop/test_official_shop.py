"""The official files must give the same shop every time, and what is wrong with them must be said."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyturn.envs.shop.catalogue.goals import NO_LIMIT
from manyturn.envs.shop.catalogue.price_draws import KeyedDraws, OriginalDraws, price_limit
from manyturn.envs.shop.webshop.goal_tasks import tasks_of
from manyturn.envs.shop.webshop.official_shop import load
from manyturn.envs.shop.webshop.records import ATTRIBUTES, HUMAN, PRODUCTS, DataError


def change(folder: Path, name: str, edit: Callable) -> None:
    file = folder / name
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(edit(content) or content), encoding="utf-8")


def test_products_are_read_as_the_original_reads_them(shop_of) -> None:
    values = {"Size": [{"value": " XX-Large/Tall "}, {"value": "S"}], "Colour": None}
    folder = shop_of(
        {"pricing": "$1,010.06 - $2,049.31", "customization_options": values, "query": " Rain Boots "},
        {"pricing": ""},
        {"small_description": "one text"},
        {"asin": "nan"},
        {"asin": "B0000000001"},
        {"asin": "B000000000"},
    )
    boots, free, lamp = load(folder, "synthetic").catalogue.products
    assert boots.price_tag == "$1010.06 to $2049.31" and 1010.06 <= boots.price <= 2049.31
    assert boots.options == {"size": ("xx-large | tall", "s")} and boots.kind == "rain boots"
    assert (free.price, free.price_tag, lamp.features) == (100.0, "$100.0", ("one text",))
    assert boots.document() == "zephira lamp b000000000  size: xx-large | tall, s"


def test_prices_are_those_of_the_recorded_run(recorded) -> None:
    file = recorded / PRODUCTS
    prices = json.loads((file.resolve().parent / "standin_prices.json").read_text(encoding="utf-8"))
    for kind in ("synthetic", "human"):
        products = load(recorded, kind, original=7).catalogue.products
        assert {product.id: product.price for product in products} == prices[kind]


def test_the_index_knows_products_that_the_shop_does_not_sell(recorded) -> None:
    catalogue = load(recorded, "synthetic").catalogue
    assert (len(catalogue.products), len(catalogue.index.ids)) == (998, 1000)


def test_goals_say_what_they_mean(small) -> None:
    for goal in load(small, "synthetic").goals:
        assert [name for name, _ in goal.options] == ["color", "size"]
        assert all(value in goal.product.options[name] for name, value in goal.options)
        assert all(f"{name}: {value}" in goal.instruction for name, value in goal.options)
        limited = f", and price lower than {goal.price_limit:.2f} dollars"
        assert goal.instruction.endswith(limited) and 0 < goal.price_limit - goal.product.price <= 40
    assert len(load(small, "synthetic").goals) == 24 * 6
    human = load(small, "human").goals
    assert len(human) == 24 and all(goal.options == ("x-large",) for goal in human)  # none without attributes


def test_a_price_above_every_step_has_no_limit(shop_of) -> None:
    goals = load(shop_of({"pricing": "$980.00"}, {"pricing": "$979.00"}), "synthetic").goals
    assert {goal.price_limit for goal in goals} == {NO_LIMIT, 990.0}
    assert all(("price" in goal.instruction) == (goal.price_limit == 990.0) for goal in goals)


def test_a_price_and_a_limit_depend_on_the_product_alone(shop_of, tmp_path_factory) -> None:
    changes = [{"asin": f"A{number}", "pricing": "$10.00 - $90.00"} for number in range(20)]
    many = {product.id: product for product in load(shop_of(*changes), "synthetic").catalogue.products}
    limits = {goal.product.id: goal.price_limit for goal in load(shop_of(*changes), "synthetic").goals}
    few = load(shop_of(*changes[10:]), "synthetic")
    assert [product.price for product in few.catalogue.products] == [many[p.id].price for p in few.catalogue.products]
    assert all(goal.price_limit == limits[goal.product.id] for goal in few.goals)
    assert len({product.price for product in many.values()}) == 20 and len(set(limits.values())) > 2


def test_limits_are_the_larger_of_two_of_the_next_four_steps() -> None:
    for draws in (KeyedDraws(), OriginalDraws(0)):
        assert {price_limit(draws, str(number), 15.0) for number in range(50)} == {30.0, 40.0, 50.0}


def test_one_shop_serves_every_environment_and_a_changed_file_gives_another(shop_of, tmp_path_factory) -> None:
    folder = shop_of({}, {})
    copy = tmp_path_factory.mktemp("copy")
    for name in (PRODUCTS, ATTRIBUTES, HUMAN):
        (copy / name).write_bytes((folder / name).read_bytes())
    shop = load(folder, "synthetic")
    assert load(folder, "synthetic") is shop and load(copy, "synthetic") is shop
    assert load(folder, "human") is not shop and load(folder, "synthetic", 7) is not shop
    change(folder, PRODUCTS, lambda records: records[:1])
    assert len(load(folder, "synthetic").catalogue.products) == 1 and load(copy, "synthetic") is shop


def test_splits_share_no_product_and_leave_out_no_goal(small, recorded) -> None:
    for folder in (small, recorded):
        for kind in ("synthetic", "human"):
            shop = load(folder, kind)
            tasks = tasks_of(shop, kind, None)
            assert list(tasks) == ["train", "validation", "test"]
            products = [{task.params["product"] for task in tasks[split]} for split in tasks]
            assert sum(map(len, products)) == len(set.union(*products))
            assert sum(map(len, tasks.values())) == len(shop.goals)


def test_original_splits_are_the_canonical_ranges(recorded) -> None:
    shop = load(recorded, "synthetic", 7)
    tasks = tasks_of(shop, "synthetic", 7)
    assert {split: len(some) for split, some in tasks.items()} == {"train": 1105, "validation": 1000, "test": 500}
    order = [task.params["instruction"] for split in ("test", "validation", "train") for task in tasks[split]]
    assert order == [goal.instruction for goal in shop.goals]
    assert list(tasks_of(load(recorded, "human", 7), "human", 7)) == ["validation", "test"]


def test_a_folder_without_the_files_is_told_where_they_come_from(tmp_path) -> None:
    for folder in (None, tmp_path):
        with pytest.raises(DataError, match=rf"{PRODUCTS}.*princeton-nlp/WebShop.*data="):
            load(folder, "synthetic")


@pytest.mark.parametrize(
    ("name", "edit", "named"),
    [
        (PRODUCTS, lambda records: {"a": 1}, PRODUCTS),
        (PRODUCTS, lambda records: [1], f"{PRODUCTS}.*no text, array or object"),
        (PRODUCTS, lambda records: [[]], "record 0"),
        (PRODUCTS, lambda records: records[0].pop("asin") and None, "record 0"),
        (PRODUCTS, lambda records: records[1].pop("name") and None, "B000000001.*name"),
        (PRODUCTS, lambda records: records[1].update(pricing="free"), "B000000001.*free"),
        (PRODUCTS, lambda records: records[1].update(pricing="$"), "B000000001"),
        (PRODUCTS, lambda records: records[1].update(full_description=None), "B000000001"),
        (PRODUCTS, lambda records: records[1].update(small_description=["a", 1]), "B000000001.*1 is no text"),
        (PRODUCTS, lambda records: records[1].update(customization_options={"Size": ["S"]}), "B000000001"),
        (ATTRIBUTES, lambda about: [about], ATTRIBUTES),
        (ATTRIBUTES, lambda about: {"B1": {}}, "no product of"),
        (HUMAN, lambda written: {"B000000000": [{}]}, HUMAN),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_named_in_one_line(shop_of, name, edit, named) -> None:
    folder = shop_of({}, {})
    change(folder, name, edit)
    with pytest.raises(DataError, match=named) as caught:
        load(folder, "human" if name == HUMAN else "synthetic")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [PRODUCTS, ATTRIBUTES, HUMAN])
def test_a_file_that_is_nested_too_deep_is_named_in_one_line(shop_of, name: str) -> None:
    folder, deep = shop_of({}, {}), "[" * 100_000 + "]" * 100_000
    (folder / name).write_text(f'[{{"asin": {deep}}}]' if name == PRODUCTS else f'{{"B000000000": {deep}}}')
    with pytest.raises(DataError, match=f"{name}.*fetch the file again") as caught:
        load(folder, "human")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("axes", [7, 30])  # 64 bits hold the first number of goals only
def test_a_product_with_more_goals_than_fit_into_memory_is_named(shop_of, axes: int) -> None:
    values = [{"value": f"v{number}"} for number in range(10)]
    folder = shop_of({}, {"customization_options": {f"axis {number}": values for number in range(axes)}})
    with pytest.raises(DataError, match=rf"B000000001 of .*{PRODUCTS}.*more than 1,000,000 goals") as caught:
        load(folder, "synthetic")
    assert "\n" not in str(caught.value) and len(load(folder, "human").goals) == 2


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_a_file_that_was_cut_off_is_named(shop_of, cut: int) -> None:
    folder = shop_of({}, {})
    for name in (PRODUCTS, ATTRIBUTES):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:cut])
        with pytest.raises(DataError, match=f"{name}.*fetch the file again"):
            load(folder, "synthetic")
        (folder / name).write_bytes(whole)
