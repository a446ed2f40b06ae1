"""A purchase must be worth what the original says it is worth."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.shop.catalogue.catalogue import Product
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.reward.fuzzy_match import _longest_common_subsequence, same, token_set_ratio
from manyturn.envs.shop.reward.nouns import plain_nouns
from manyturn.envs.shop.reward.reward import Judge, Score
from manyturn.envs.shop.webshop.official_shop import load

TEXT = st.text("ab x-é★", max_size=14)


def product(record: dict[str, Any], price: float = 0.0) -> Product:
    return Product(
        id=record["asin"],
        title=record["name"],
        description=record.get("Description", ""),
        features=tuple(record.get("BulletPoints", ())),
        options={},
        attributes=tuple(record.get("Attributes", ())),
        price=price,
        price_tag="",
        kind=record["query"],
        path=record["product_category"],
        department="",
    )


def judged(case: dict[str, Any]) -> Score:
    """A recorded purchase, judged with the nouns that the original found."""
    bought, wanted = product(case["product"], case["price"]), case["goal"]
    options = wanted["goal_options"]
    pairs = tuple(options.items() if isinstance(options, dict) else options)
    goal = Goal(product(wanted), "", tuple(wanted["attributes"]), pairs, wanted["price_upper"])
    nouns = {bought.title: tuple(case["purchased_nouns"]), wanted["name"]: tuple(case["desired_nouns"])}
    return Judge(goal, nouns.__getitem__).score(bought, case["options"])


def test_recorded_rewards_and_their_parts_come_out(golden) -> None:
    cases = golden("webshop_reward_cases")["cases"]
    assert cases
    for case in cases:
        score, parts = judged(case), case["parts"]
        assert score.official == pytest.approx(case["reward"], abs=1e-9), case["tag"]
        assert score.type.factor == parts["r_type"] and score.type.title == pytest.approx(
            parts["title_score"], abs=1e-9
        )
        assert (score.type.same_kind, score.type.same_path) == (parts["query_match"], parts["category_match"])
        assert score.attributes == case["num_attr_matches"] and score.price == parts["r_price"]
        if "r_option" in parts:
            assert score.options / len(case["goal"]["goal_options"]) == pytest.approx(parts["r_option"], abs=1e-9)
        assert score.strict <= score.official


def test_plain_nouns_give_the_originals_factor_nearly_always(golden) -> None:
    cases, equal = golden("webshop_reward_cases")["cases"], 0
    for case in cases:
        titles = (case["product"]["name"], case["goal"]["name"])
        found = dict(zip(("purchased_nouns", "desired_nouns"), map(plain_nouns, titles), strict=True))
        equal += judged(case | found).type.factor == case["parts"]["r_type"]
    assert equal >= 0.95 * len(cases) - 1  # a few cases say little


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_strict_reward_is_never_above_the_official_and_both_are_shares(small, data: st.DataObject) -> None:
    shop = load(small, data.draw(st.sampled_from(["synthetic", "human"])))
    goal = data.draw(st.sampled_from(shop.goals))
    bought = data.draw(st.sampled_from(shop.catalogue.products))
    chosen = {
        name: data.draw(st.sampled_from(values)) for name, values in bought.options.items() if data.draw(st.booleans())
    }
    score = Judge(goal, plain_nouns).score(bought, chosen)
    assert 0 <= score.strict <= score.official <= 1
    if score.strict == 1:
        assert bought.kind == goal.product.kind and bought.price <= goal.price_limit
        assert all((w in chosen.values()) if isinstance(w, str) else chosen[w[0]] == w[1] for w in goal.options)


@pytest.mark.parametrize(
    ("option", "wanted", "passes", "equal"),
    [
        ("large", "x-large", True, False),
        ("x-large", "large", True, False),
        ("dark grey", "dark green", True, False),
        ("infrared", "red", True, False),
        ("small", "large", False, False),
        ("size", ("size", "large"), True, False),
        ("large", ("size", "large"), True, True),
        ("titanium", ("size", "titanium"), False, False),  # "tan" stands for it, and is no word of the pair
        ("titanium", "titanium", True, True),
    ],
)
def test_options_pass_as_in_the_original(option: str, wanted: Any, passes: bool, equal: bool) -> None:
    lamp = product({"asin": "B1", "name": "Kesso Lamp", "query": "lamps", "product_category": "Home"}, 10.0)
    score = Judge(Goal(lamp, "", ("lamp",), (wanted,), 10.0), plain_nouns).score(lamp, {"size": option})
    assert (score.options, score.strict_options) == (passes, equal)
    assert score.price and score.attributes == 1  # a price at the limit is within it


def test_known_ratios_come_out() -> None:
    pairs = {("x-large", "Large"): 100, ("wine red", "wine rod"): 88, ("easy clean", "easily cleaned"): 83, ("", ""): 0}
    assert {pair: token_set_ratio(*pair) for pair in pairs} == pairs


@given(TEXT, TEXT)
def test_the_ratio_is_a_symmetric_share_and_words_within_words_are_alike(one: str, other: str) -> None:
    ratio = token_set_ratio(one, other)
    assert ratio == token_set_ratio(other, one) and 0 <= ratio <= 100
    assert same(one, other) == (ratio > 85)
    if token_set_ratio(one, one):
        assert token_set_ratio(one, f"{one} {other}") == 100
    else:
        assert ratio == 0  # a text without words is like nothing


@given(st.text("abcdefgh", min_size=4, max_size=20), st.data())
def test_words_that_differ_by_a_letter_are_told_from_others_as_the_ratio_tells_them(
    word: str, data: st.DataObject
) -> None:
    spot = data.draw(st.integers(0, len(word)))
    other = word[:spot] + "z" + word[spot + data.draw(st.integers(0, 1)) :]
    assert same(word, other) == (token_set_ratio(word, other) > 85)


@given(TEXT, TEXT)
def test_the_longest_common_subsequence_is_the_longest(one: str, other: str) -> None:
    rows = [[0] * (len(other) + 1)]
    for letter in one:
        row = [0]
        for spot, match in enumerate(other):
            row.append(rows[-1][spot] + 1 if letter == match else max(row[-1], rows[-1][spot + 1]))
        rows.append(row)
    assert _longest_common_subsequence(one, other) == rows[-1][-1]
