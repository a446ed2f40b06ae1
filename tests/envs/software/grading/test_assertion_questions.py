"""A question says what to compute and not what should come out; everything else of a file of tests stays as it is."""

import ast
import builtins
from collections.abc import Iterator

import pytest

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.software.grading.assertion_questions import questions
from manyturn.envs.software.grading.literal_mutations import altered
from manyturn.envs.software.testing.answer_recorder import AnswerRecorder

TESTS = b'''"""Tests: 11 == 11."""
import unittest
import ast

import pytest
from lib import f, g

def test_compared():
    assert f(7, 2) == 41, "no"  # a comment
    assert 42 == f(1)
    assert f(2) == pytest.approx(43.5, rel=1e-3)
    assert f(
        3,  # three
    ) == [44, {"x": 45}]

def test_conditions():
    assert not g(1)
    assert g(2) and f(1) != 46
    assert f(1) is not None
    assert f(1) <= 47 < 50
    assert f(9) is True

def test_errors():
    with pytest.raises(KeyError, match="secret"):
        g("bad")
    pytest.raises((ValueError, lib.Odd), g, "bad", key=1)

class TestCase(unittest.TestCase):
    def test_methods(self):
        self.assertEqual(f(5), 48)
        self.assertEqual({49: 1}, f(6), msg="m")
        self.assertIs(f(9), False)
        self.assertIsNone(f(7)); self.assertFalse(f(8) == 9)
        with self.assertRaisesRegex(KeyError, "hidden"):
            g("bad")

def test_nothing():
    f(5)
    found = f(6)
'''


def test_what_is_expected_is_gone_and_the_rest_stays() -> None:
    text = questions(TESTS).text.decode()
    ast.parse(text)
    for gone in (
        "41",
        "42",
        "43.5",
        "44",
        "45",
        "48",
        "49",
        "KeyError",
        "secret",
        "hidden",
        "Odd",
        '"no"',
        "True",
        "False",
    ):
        assert gone not in text, gone
    for left in ('"""Tests: 11 == 11."""', "  # a comment", "3,  # three", "from lib import f, g", '("bad")'):
        assert left in text, left


def test_of_two_opposite_conditions_the_same_one_is_asked() -> None:
    pairs = [("g(1)", "not g(1)"), ("a == b", "not a == b"), ("a is b", "a is not b"), ("a in b", "a not in b")]
    for one, other in pairs[:1] + pairs[2:]:
        texts = {questions(f"def test():\n    assert {each}\n".encode()).text for each in (one, other)}
        assert len(texts) == 1, texts


def test_names_of_expected_errors_stay_outside() -> None:
    found = questions(TESTS)
    assert {frozenset(names) for names in found.raises.values()} == {
        frozenset({"KeyError"}),
        frozenset({"ValueError", "Odd"}),
    }


@pytest.fixture
def asker(monkeypatch: pytest.MonkeyPatch) -> Iterator[AnswerRecorder]:
    asker = AnswerRecorder()
    monkeypatch.setattr(builtins, "__ask__", asker, raising=False)
    yield asker


def asked(asker: AnswerRecorder, body: str, **names: object) -> list[object]:
    """The answers of the body of a test."""
    text = "import pytest\ndef test():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    exec(questions(text.encode()).text, names)  # noqa: S102 # a text of ours
    asker.begin()
    names["test"]()  # type: ignore[operator]
    return [answer for _, answer in asker.report()]


def test_answers_are_values_and_wrong_ones_do_not_end_a_test(asker: AnswerRecorder) -> None:
    body = "assert f(1) == 5\nassert not f(0)\nassert f(2) == f(3)\nwith pytest.raises(KeyError) as e:\n    {}[f(1)]"
    assert asked(asker, f"{body}\nassert str(e.value) == 'x'", f=lambda x: x) == [
        *(1, False, [2, 3], ["KeyError", "LookupError", "Exception", "BaseException", "object"][:4], "1")
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1]", "(1,)"),
        ("{1}", "[1]"),
        ("1", "'1'"),
        ("b'1'", "'1'"),
        ("{1: 2}", "{1: 3}"),
        ("None", "0"),
        ("range(3)", "[0, 1, 2]"),
        ("'a' * 5000", "'a' * 5001"),
        ("10 ** 300", "10 ** 301"),
        ("type('T', (int,), {'__eq__': lambda s, o: True, '__repr__': lambda s: '4'})(3)", "4"),
    ],
)
def test_values_that_differ_are_told_apart(asker: AnswerRecorder, one: str, other: str) -> None:
    answers = [asked(asker, f"x = {value}\nassert x == 0") for value in (one, other, one)]
    assert answers[0] == answers[2] != answers[1]


def test_no_answer_is_lost_in_a_long_test(asker: AnswerRecorder) -> None:
    body = "for i in range(1000):\n    assert f(i) == 1"
    one, other = (asked(asker, body, f=lambda i, at=at: i == at) for at in (998, 999))
    assert len(one) == len(other) < 300 and one != other


def test_many_answers_may_differ_by_rounding_and_by_no_more(asker: AnswerRecorder) -> None:
    def answers(value: object) -> object:
        return asked(asker, "for i in range(300):\n    assert f(i) == 1", f=lambda i: [value, i / 7])[-1]

    assert answers(0.1 + 0.2) == answers(0.3) and answers(1e-17) == answers(0.0) and answers(2.0) == answers(2)
    assert answers(0.3) != answers(0.301) and answers(10**12) != answers(10**12 + 1)
    assert answers(float("nan")) == answers(float("nan")) != answers(float("inf"))


def test_a_file_that_is_no_python_is_left_alone() -> None:
    assert questions(b"def f(:\n").text == b"def f(:\n"


PARAMETERS = b'''import pytest
DATA = [[1, 2], [3, 4]]
OTHER = 5

@pytest.mark.parametrize("a,b", [(10, 20), (30, 40)], ids=["x", "y"])
def test_it(a, b):
    """Docs 7."""
    assert f(a, "word", *DATA) == b

def test_other():
    assert f(50) == 60
'''


def test_other_literals_are_those_of_the_chosen_test_alone() -> None:
    before = questions(PARAMETERS).text
    texts = {altered(before, ["test_it"], copy, generator("alter", copy)).decode() for copy in range(20)}
    assert len(texts) > 15 and before.decode() not in texts
    for text in texts:
        ast.parse(text)
        for kept in ('"a,b"', 'ids=["x", "y"]', '"""Docs 7."""', "OTHER = 5", "__ask__.both(1, "):
            assert kept in text
        assert "test_other" not in text
    assert any('"word"' not in text for text in texts) and any("[[1, 2], [3, 4]]" not in text for text in texts)


def test_other_literals_are_of_the_kind_that_a_specification_may_ask_for() -> None:
    before = b"def test_it():\n    assert f('0110', '10', 3, 1) == g(2)\n"
    for copy in range(60):
        after = altered(before, ["test_it"], copy, generator("alter kinds", copy))
        found = [node.value for node in ast.walk(ast.parse(after)) if isinstance(node, ast.Constant)]
        assert {sign for value in found if isinstance(value, str) for sign in value} <= {"0", "1"}
        assert min(value for value in found if isinstance(value, int)) >= 1


def test_other_literals_follow_from_the_generator() -> None:
    once, again = (altered(PARAMETERS, ["test_it"], 1, generator("alter")) for _ in range(2))
    assert once == again
    used = PARAMETERS + b"each = test_it, test_other\n"
    assert altered(used, ["test_absent", "C::test_it"], 1, generator("alter")) == used


ROUNDABOUT = b"""
LIMIT = 11
UNUSED = 99

def made(n):
    return f(n, LIMIT)

class Base:
    size = 22

    def make(self):
        return made(33)

    def test_it(self):
        assert self.make().of(self.size) == 44

class TestHere(Base):
    other = 77
"""


def test_literals_that_a_test_comes_to_through_its_file_are_others_too() -> None:
    """A test that is inherited, or has its inputs from a helper's helper, had no copies at all."""
    texts = [altered(ROUNDABOUT, ["TestHere::test_it"], n, generator("far", n)).decode() for n in range(40)]
    for literal, changes in (("11", True), ("22", True), ("33", True), ("44", True), ("99", False), ("77", False)):
        assert any(literal not in text for text in texts) == changes, literal
