"""A rule is computed, never run, and two ways to write it are one rule."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.benchmarks.userrl.number_rules import Rule, Uncomputable, made
from manyturn.envs.contract.stable_random import Draws

NUMBERS = st.lists(st.integers(-50, 50), min_size=4, max_size=4)


@given(st.integers(0, 10**6), NUMBERS)
def test_a_rule_gives_what_python_gives(seed, numbers):
    rule = made(Draws("test", seed))
    names = dict(zip("abcd", map(float, numbers), strict=True))
    try:
        expected = eval(rule.text, {"__builtins__": {}}, names)  # noqa: S307  # made here, not by a model
    except ZeroDivisionError:
        with pytest.raises(Uncomputable):
            rule(numbers)
    else:
        assert rule(numbers) == expected


@pytest.mark.parametrize(
    "text",
    ["", "a +", "e + a", "a and b", "a if b else c", "abs(a)", "a.real", "[a][0]", "lambda: a", "a @ b", "a // b", "~a",
     "'x' * 9", "True + a", "__import__('os').system('true')", "(a := 1)", "a + 1j", "f'{a}'",
     "(" * 300 + "a" + ")" * 300, "a" + " + a" * 60, "-" * 5000 + "a", "a\x00"],
)  # fmt: skip
def test_what_is_no_rule_is_refused_unread(text):
    with pytest.raises(ValueError):
        Rule(text)


@pytest.mark.parametrize("numbers", [(0, 0, 0, 0), (1e300, 1e300, 1, 1), (-1, 0.5, 1, 1), (math.inf, 1, 1, 1)])
def test_what_has_no_value_says_so(numbers):
    rule = Rule("a ** b ** (a ** 2) / (c - d) + a ** b")
    with pytest.raises(Uncomputable):
        rule(numbers)


@pytest.mark.parametrize(
    ("one", "other"), [("a + b * c - d", "b * c + (a - d)"), ("(a + b) ** 2", "a ** 2 + 2 * a * b + b ** 2")]
)
def test_the_same_function_has_the_same_key_and_another_has_not(one, other):
    assert Rule(one).key == Rule(other).key != Rule("a + b + c + d").key
