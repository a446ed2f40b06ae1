"""The words of the made shop must keep WebShop's lenient comparison exact, or wrong purchases would be paid in full."""

from itertools import permutations, product

import pytest

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.shop.generated.instruction_templates import TEMPLATES, UNSEEN, phrase
from manyturn.envs.shop.generated.product_kinds import KINDS, Kind, title_name, type_label
from manyturn.envs.shop.pages.pages import BACK, BUY, DETAILS, NEXT, PREVIOUS, SEARCH
from manyturn.envs.shop.reward.fuzzy_match import same
from manyturn.envs.shop.reward.reward import option_met

EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@EACH_KIND
def test_no_attribute_passes_for_another_or_stands_in_a_name(kind: Kind) -> None:
    assert len(set(kind.attributes)) == 30
    for one, other in permutations(kind.attributes, 2):
        assert not same(one, other) and one not in other
    assert not [(word, name) for word in kind.attributes for name in kind.heads if word in name]


@EACH_KIND
def test_a_value_passes_for_itself_alone(kind: Kind) -> None:
    offered = [(axis, value) for axis, values in kind.axes.items() for value in values]
    for (axis, value), wanted in product(offered, offered):
        assert option_met((value,), wanted) == ((axis, value) == wanted)
    values = {value for _, value in offered}
    assert len(values) == len(offered) and not values & {SEARCH, BACK, NEXT, PREVIOUS, BUY, *DETAILS}


def test_there_are_24_kinds_in_5_departments_and_no_two_share_a_name_or_a_category_below_the_department() -> None:
    assert len(KINDS) == 24 and len({kind.department for kind in KINDS}) == 5
    names = [name for kind in KINDS for name in kind.heads]
    assert len(set(names)) == len(names) == 72
    below = [category for kind in KINDS for category in kind.path[1:]]
    assert len(set(below)) == len(below) == 24 * 3 and not {kind.department for kind in KINDS} & set(below)


def test_kinds_have_attributes_in_common() -> None:
    for kind in KINDS:
        others = {attribute for other in KINDS if other is not kind for attribute in other.attributes}
        assert len(set(kind.attributes) & others) >= 18


@EACH_KIND
def test_a_title_tells_its_type(kind: Kind) -> None:
    for name in kind.heads:
        title = f"kesso {name}, {kind.attributes[0]}"
        assert title_name(title) == name and type_label(title) == (kind.name,)


@pytest.mark.parametrize("template", [*TEMPLATES, *UNSEEN])
@pytest.mark.parametrize("options", [[], [("color", "teal")], [("color", "teal"), ("size", "xl"), ("material", "oak")]])
def test_an_instruction_says_all_that_is_wanted(template: str, options: list[tuple[str, str]]) -> None:
    assert len(TEMPLATES) + len(UNSEEN) == len({*TEMPLATES, *UNSEEN}) == 12
    texts = set()
    for number in range(200):
        traits = ["organic", "hand picked", "soft brushed"][: number % 3 + 1]
        text = phrase(Draws("test", number), [template], "earphone", traits, options, 85)
        texts.add(text)
        assert all(part in text for part in ("earphone", "85 dollars", *traits))
        assert all(f"{axis} {value}" in text or f"{axis}: {value}" in text for axis, value in options)
        assert not [bad for bad in ("{", "[", "  ", " ,", " a earphone", " an soft") if bad in text]
    assert len(texts) > 10
