"""Agreement of two answers to a question, by the rule of the test that poses it."""

import math
from collections.abc import Sequence
from typing import Any

from manyturn.envs.software.grading.assertion_questions import RAISES, Questions

_CLOSE, _NEAR_ZERO, _LARGEST = 1e-6, 1e-9, 1 << 64


UNSTEADY = {"any": "answer"}
"""Stands for an answer in which the reference does not agree with itself, so that nobody has to."""


def agree(questions: Questions, expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    """True if an answer equals the reference's.

    Args:
        questions: the questions of the file.
        expected, actual: number of the question, and the answer of the reference and of a program.
    """
    number, answer = expected
    if actual[0] != number:
        return False
    if answer is UNSTEADY:
        return True
    if questions.kinds.get(number) == RAISES and answer and isinstance(actual[1], list):
        # A test names what it expects, often a class above what is raised.
        named = {name for name in actual[1] if isinstance(name, str)}
        return not questions.raises.get(number, frozenset()).union(answer[:1]).isdisjoint(named)
    return same(answer, actual[1])


def same(one: Any, other: Any) -> bool:
    """Equality as ``==`` has it, apart from what a processor may round. Forged answers may be of any depth."""
    try:
        return _same(one, other)
    except RecursionError:
        return False


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list) and one[:1] != ["float"] != other[:1]:
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, int) and isinstance(other, int):  # no processor rounds these
        return one == other
    left, right = _number(one), _number(other)
    if left is None or right is None:
        return one == other
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or math.isclose(left, right, rel_tol=_CLOSE, abs_tol=_NEAR_ZERO)


def _number(value: Any) -> float | None:
    if isinstance(value, list) and len(value) == 2 and value[0] == "float" and isinstance(value[1], str):
        try:
            return float(value[1])
        except ValueError:
            return None
    if isinstance(value, int) and abs(value) > _LARGEST:  # no float, and not compared as one
        return None
    return value if isinstance(value, int | float) else None
