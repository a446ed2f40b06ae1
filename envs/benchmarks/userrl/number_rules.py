"""Rules of four numbers: read from text without running it, computed, and made."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from manyturn.envs.contract.python_parser import parse_expression
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws

NAMES = "abcd"
_LONGEST = 200  # characters of a rule
_TWO: Mapping[type, Callable[[float, float], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_SHAPES = (
    "{} {} {} {} {} {} {}",
    "({} {} {}) {} {} {} {}",
    "{} {} ({} {} {}) {} {}",
    "({} {} {}) {} ({} {} {})",
    "({} {} {} {} {}) {} {}",
    "{} {} ({} {} {} {} {})",
)
_PROBES = ((1.37, 2.71, 3.19, 5.03), (7.11, 4.57, 0.83, 2.29), (3.61, 8.09, 6.47, 1.93))


class Uncomputable(ArithmeticError):
    """The rule has no value for these numbers."""


class Rule:
    """An expression over ``a``, ``b``, ``c`` and ``d`` with ``+ - * / **``, numbers and brackets.

    Args:
        text: such as ``(a + b) * c - d ** 2``.

    Raises:
        ValueError: it is anything else.
    """

    def __init__(self, text: str):
        self.text = text
        try:
            self._tree = parse_expression(text[: _LONGEST + 1])
        except (SyntaxError, RecursionError, MemoryError):
            raise ValueError(f"{text!r:.80} is no rule") from None
        if len(text) > _LONGEST or not all(map(_allowed, ast.walk(self._tree))):
            raise ValueError(f"{text!r:.80} is no rule of a, b, c and d with + - * / **")

    def __call__(self, numbers: Sequence[float]) -> float:
        """The value for four numbers. Raises Uncomputable."""
        try:
            value = _value(self._tree, dict(zip(NAMES, map(float, numbers), strict=True)))
        except (ZeroDivisionError, OverflowError):
            raise Uncomputable(self.text) from None
        if not math.isfinite(value):
            raise Uncomputable(self.text)
        return value

    @property
    def key(self) -> str:
        """The same for rules that are the same function, however they are written."""
        values = []
        for probe in _PROBES:
            try:
                values.append(f"{self(probe):.9g}")
            except Uncomputable:
                values.append("")
        return digest("rule", values)


def made(draws: Draws) -> Rule:
    """A rule in which each of the four numbers stands once, some of them squared."""
    names, order = list(NAMES), []
    while names:
        order.append(names.pop(draws.below(len(names))))
    terms = [f"{name} ** 2" if draws.below(4) == 0 else name for name in order]
    signs = [draws.pick("+-*/") for _ in range(3)]
    parts = [terms[0], *(part for pair in zip(signs, terms[1:], strict=True) for part in pair)]
    return Rule(draws.pick(_SHAPES).format(*parts))


def _allowed(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.Name(id=name):
            return name in NAMES
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.USub, ast.Load, *_TWO))


def _value(node: Any, numbers: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name():
            return numbers[node.id]
        case ast.UnaryOp():
            return -_value(node.operand, numbers)
    value = _TWO[type(node.op)](_value(node.left, numbers), _value(node.right, numbers))
    if isinstance(value, complex):  # a root of a negative number
        raise ZeroDivisionError
    return value
