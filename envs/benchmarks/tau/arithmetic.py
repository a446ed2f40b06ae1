"""The tools' calculator: what Python's ``eval`` would say of a sum, without evaluating anything."""

import ast
import operator
from collections.abc import Callable
from typing import Any

SIGNS = frozenset("0123456789+-*/(). ")
LONGEST = 2000  # characters
MOST_BITS = 10_000  # of an integer on the way to the result

_TWO: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_ONE: dict[type, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def has_other_signs(expression: Any) -> bool:
    """True if the calculator refuses the expression at sight. Raises TypeError if it is no text."""
    return not all(sign in SIGNS for sign in expression)


def calculated(expression: Any) -> str:
    """The value rounded to two places. Raises what ``eval`` would raise, with the same words.

    >>> calculated("(65 + 83) * 2")
    '296.0'
    """
    if not isinstance(expression, str):
        raise TypeError("eval() arg 1 must be a string, bytes or code object")
    if len(expression) > LONGEST:
        raise ValueError(f"an expression has at most {LONGEST} characters")
    try:
        tree: Any = compile(expression.lstrip(" "), "<string>", "eval", ast.PyCF_ONLY_AST)
        return str(round(float(_value(tree.body)), 2))
    except (RecursionError, MemoryError):
        raise ValueError("the expression is nested too deeply") from None


def _value(node: Any) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp():
            return _ONE[type(node.op)](_value(node.operand))
        case ast.BinOp():
            left, right = _value(node.left), _value(node.right)
            _check_size(node.op, left, right)
            return _TWO[type(node.op)](left, right)
        case ast.Call():
            called = _value(node.func)
            for argument in node.args:  # whose own faults come first
                _value(argument.value if isinstance(argument, ast.Starred) else argument)
            raise TypeError(f"'{type(called).__name__}' object is not callable")
        case ast.Tuple():
            return tuple(map(_value, node.elts))
    raise SyntaxError("invalid syntax")


def _check_size(sign: ast.operator, left: Any, right: Any) -> None:
    """Refuse integers that would take minutes or all memory; as a float they are too large anyway."""
    if isinstance(left, int) and isinstance(right, int):
        bits = abs(left).bit_length()
        if isinstance(sign, ast.Pow) and bits > 1:
            bits *= max(right, 0)
        elif isinstance(sign, ast.Mult):
            bits += abs(right).bit_length()
        if bits > MOST_BITS:
            raise OverflowError("int too large to convert to float")
