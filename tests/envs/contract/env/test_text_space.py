"""TextSpace: an agent may write anything."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.env.text_space import TextSpace

pytestmark = pytest.mark.versions


@given(st.text())
def test_every_text_is_contained(text):
    assert TextSpace().contains(text) and text in TextSpace()


@pytest.mark.parametrize("value", [3, None, b"bytes", ["text"]])
def test_nothing_else_is(value):
    assert not TextSpace().contains(value)


def test_the_length_limit_holds_for_members_and_samples():
    space = TextSpace(max_length=3, seed=0)
    assert "abc" in space and "abcd" not in space
    assert all(sample in space for sample in (space.sample() for _ in range(200)))
    with pytest.raises(ValueError, match="at least 1"):
        TextSpace(max_length=0)


def test_samples_depend_on_the_seed_and_reach_beyond_ascii():
    one, two = TextSpace(seed=1), TextSpace(seed=1)
    samples = [one.sample() for _ in range(100)]
    assert samples == [two.sample() for _ in range(100)]
    assert not "".join(samples).isascii()


def test_spaces_compare_by_their_limit():
    assert TextSpace(5) == TextSpace(5) == copy.deepcopy(TextSpace(5)) != TextSpace(6)
    assert repr(TextSpace(5)) == "TextSpace(max_length=5)"


def test_a_mask_is_refused_and_not_ignored():
    with pytest.raises(ValueError, match="neither mask nor probability"):
        TextSpace().sample(mask="a")
