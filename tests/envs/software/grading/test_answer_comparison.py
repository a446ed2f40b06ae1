"""An answer is right if it is the reference's, whatever a forger makes it of."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.software.grading.answer_comparison import UNSTEADY, agree, same
from manyturn.envs.software.grading.assertion_questions import questions

RAISING = questions(b"import pytest\ndef test():\n    with pytest.raises(LookupError):\n        f()\n")
NAN, HUGE, DEEP = ["float", "nan"], 10**400, json.loads("[" * 500 + "]" * 500)

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats().map(lambda x: ["float", repr(x)]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)
SENT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)


@pytest.mark.parametrize("given", [0.0, 7, ["float", "1.5"], float("inf"), HUGE, True, None, "nan", [], [NAN]])
def test_no_number_is_the_same_as_one_that_is_none(given: object) -> None:
    assert not same(NAN, given) and not same(given, NAN)
    assert not same(["list", NAN], ["list", given])


@pytest.mark.parametrize(
    "told", [1, 1.5, ["float", "1.5"], ["float", "inf"], ["float", "-1e308"], "x", ["list", 1], []]
)
def test_answers_that_no_processor_holds_are_wrong_and_no_error(told: object) -> None:
    for sent in (HUGE, -HUGE, ["float", "1e999999x"], ["float", HUGE], ["list", HUGE], DEEP, {"": DEEP}, float("nan")):
        assert not same(told, sent)


def test_numbers_may_be_rounded_and_no_more() -> None:
    assert same(["float", repr(0.1 + 0.2)], ["float", "0.3"]) and same(["float", "2.0"], 2) and same(NAN, NAN)
    assert not same(["float", "0.3"], ["float", "0.30001"]) and not same(1 << 70, (1 << 70) + 1)
    assert not same(125411328000, 125411328001) and not same(["list", 1 << 40], ["list", (1 << 40) + 1])


@pytest.mark.parametrize("given", [[], "LookupError", [["LookupError"]], [DEEP], {"LookupError": 1}, None, True, HUGE])
def test_what_is_raised_is_named_in_plain_words(given: object) -> None:
    told = [1, ["KeyError", "LookupError", "Exception"]]
    assert agree(RAISING, told, [1, ["IndexError", "LookupError", "Exception"]])
    assert not agree(RAISING, told, [1, given]) and not agree(RAISING, told, [1, ["Exception"]])


def test_where_the_reference_is_unsteady_the_question_still_has_to_be_come_to() -> None:
    assert agree(RAISING, [1, UNSTEADY], [1, "x"]) and not agree(RAISING, [1, UNSTEADY], [2, "x"])


@given(PLAIN, SENT)
def test_whatever_is_sent_is_compared(told: object, sent: object) -> None:
    assert same(told, told) and same(told, sent) == same(sent, told)
