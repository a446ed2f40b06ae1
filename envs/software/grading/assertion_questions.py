"""Turns tests into questions: what a test asserts is asked, and what it expects is taken out of the file.

``assert add(7, 2) == 9`` becomes ``__ask__.value(1, (add(7, 2)))``. Code that runs with such a file is told what to
compute and not what should come out, so there is no verdict in its process that it could send, and no expectation that
it could read or satisfy. Questions of ``grading_plugin.AnswerRecorder``::

    value     what was compared with something written out in the test
    both      both sides of a comparison of which neither is written out
    truth     whether a condition holds; of two opposite conditions always the same one, so that neither is betrayed
    raises    which exception a block or call raises, if any
    seen      what a call in a test without assertions gives

Everything else of the file stays as it is, to the byte.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.software.source.edits import Edit, Piece, Places, applied

VALUE, BOTH, TRUTH, RAISES, SEEN = "value", "both", "truth", "raises", "seen"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Question = tuple[str, tuple[Piece, ...]]

# Of two opposite comparisons one is asked, whichever the test has. Orders may be partial: they have no opposite.
_SAME = {ast.Eq: "==", ast.NotEq: "==", ast.Is: "is", ast.IsNot: "is", ast.In: "in", ast.NotIn: "in"}
_SAME |= {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_MADE_OF_CONSTANTS = frozenset({"set", "frozenset", "dict", "list", "tuple", "range", "float", "int", "str", "bytes"})

_EQUAL = {f"assert{kind}Equal" for kind in ("", "List", "Dict", "Set", "Tuple", "Sequence", "MultiLine", "Almost")}
_EQUAL |= {"assertEquals"}
_PAIRS = {
    **dict.fromkeys(("assertNotEqual", "assertNotEquals"), "=="),
    **dict.fromkeys(("assertIs", "assertIsNot"), "is"),
    **dict.fromkeys(("assertIn", "assertNotIn"), "in"),
    **{"assertLess": "<", "assertLessEqual": "<=", "assertGreater": ">", "assertGreaterEqual": ">="},
}
_TRUTHS = ("assertTrue", "assertFalse", "assert_", "assertIsNone", "assertIsNotNone")
_TYPES = ("assertIsInstance", "assertNotIsInstance")
_RAISES = {"raises": 1, "assertRaises": 1, "assertRaisesRegex": 2}  # arguments before what is called


class Questions(NamedTuple):
    """A file of questions.

    Attributes:
        text: of the file; the same as before if it is no Python.
        kinds: number of a question -> its kind.
        raises: number of a question -> names of the exceptions that the test expects.
    """

    text: bytes
    kinds: Mapping[int, str]
    raises: Mapping[int, frozenset[str]]


@lru_cache(512)
def questions(source: bytes) -> Questions:
    """The questions of a file of tests."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return Questions(source, {}, {})
    inserter = _QuestionInserter(Places(source))
    for node in ast.walk(tree):
        inserter.look(node)
    for function in ast.walk(tree):
        if isinstance(function, _Function) and function.name.startswith("test"):
            inserter.look_again(function)
    return Questions(applied(source, inserter.edits), inserter.kinds, inserter.expected)


class _QuestionInserter:
    """Collects edits of one file."""

    def __init__(self, places: Places):
        self.edits: list[Edit] = []
        self.kinds, self.expected = dict[int, str](), dict[int, frozenset[str]]()
        self._places = places

    def look(self, node: ast.AST) -> None:
        match node:
            case ast.Assert(test=test):
                self._replace(node, [self._call(*question) for question in _questions(test, self._places)])
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)) as call):
                if question := list(_asked_of_unittest(name, call, self._places)):
                    self._replace(node, [self._call(*one) for one in question])
                else:
                    self._raised(call)
            case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
                self._raised(call)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    if isinstance(item.context_expr, ast.Call) and _raising(item.context_expr):
                        self._replace(item.context_expr, [self._raises(item.context_expr) + ")"])

    def look_again(self, function: _Function) -> None:
        """In a test that asserts nothing its calls are asked about."""
        first, last = self._places.span(function)
        if any(first <= edit.span[0] < last for edit in self.edits):
            return
        for node in ast.walk(function):
            match node:
                case ast.Expr(value=ast.Call() as call):
                    self._replace(call, [self._call(VALUE, (self._places.span(call),))])
                case ast.Assign(value=ast.Call() as call):
                    self._replace(call, [self._call(SEEN, (self._places.span(call),))])

    def _number(self, kind: str) -> int:
        self.kinds[len(self.kinds) + 1] = kind
        return len(self.kinds)

    def _call(self, kind: str, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        return (f"__ask__.{kind}({self._number(kind)}, (", *pieces, "))")

    def _raises(self, call: ast.Call) -> str:
        number = self._number(RAISES)
        self.expected[number] = frozenset(_names(call.args[0]))
        return f"__ask__.raises({number}"

    def _raised(self, call: ast.Call) -> None:
        """``pytest.raises(Error, function, ...)``: the function and what it is given stay."""
        before = _raising(call)
        if before and len(call.args) > before:
            span = self._places.span(call)[0], self._places.span(call.args[before])[0]
            self.edits.append(Edit("", "", span, (self._raises(call) + ", ",)))

    def _replace(self, node: ast.AST, replacements: list[tuple[Piece, ...] | str]) -> None:
        pieces: list[Piece] = []
        for number, one in enumerate(replacements):
            pieces += ["; "] * bool(number) + ([one] if isinstance(one, str) else list(one))
        self.edits.append(Edit("", "", self._places.span(node), tuple(pieces)))


def _questions(test: ast.expr, places: Places) -> Iterator[_Question]:
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _questions(value, places)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield TRUTH, _condition(inner, places)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            yield _equality(left, right, places)
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=bool())]):
            yield VALUE, (places.span(left),)
        case _:
            yield TRUTH, _condition(test, places)


def _condition(test: ast.expr, places: Places) -> tuple[Piece, ...]:
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _pair(left, _SAME[type(op)], right, places)
    return (places.span(test),)


def _pair(left: ast.expr, sign: str, right: ast.expr, places: Places) -> tuple[Piece, ...]:
    return ("(", places.span(left), f") {sign} (", places.span(right), ")")


def _equality(left: ast.expr, right: ast.expr, places: Places) -> _Question:
    left, right = _about(left), _about(right)
    if is_constant(right) != is_constant(left):
        return VALUE, (places.span(left if is_constant(right) else right),)
    return BOTH, (places.span(left), "), (", places.span(right))


def _about(node: ast.expr) -> ast.expr:
    """Arguments of ``pytest.approx``, with which it compares."""
    match node:
        case ast.Call(func=ast.Name(id="approx") | ast.Attribute(attr="approx"), args=[value, *_]):
            return value
    return node


def _asked_of_unittest(name: str, call: ast.Call, places: Places) -> Iterator[_Question]:
    match call.args:
        case [left, right, *_] if name in _EQUAL:
            yield _equality(left, right, places)
        case [left, ast.Constant(value=bool()), *_] if name == "assertIs":
            yield VALUE, (places.span(left),)
        case [left, right, *_] if name in _PAIRS:
            yield TRUTH, _pair(left, _PAIRS[name], right, places)
        case [value, kind, *_] if name in _TYPES:
            yield TRUTH, ("isinstance(", places.span(value), ", ", places.span(kind), ")")
        case [value, *_] if name in _TRUTHS:
            if name.endswith("None"):
                yield TRUTH, ("(", places.span(value), ") is None")
            elif name == "assertFalse":
                yield TRUTH, _condition(value, places)
            else:
                yield from _questions(value, places)


def is_constant(node: ast.AST) -> bool:
    """True if an expression is written out in literals."""
    match node:
        case ast.Constant():
            return True
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.UnaryOp() | ast.BinOp():
            return all(is_constant(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _MADE_OF_CONSTANTS:
            return all(is_constant(part) for part in args)
    return False


def _raising(call: ast.Call) -> int:
    """Number of arguments before the callable; 0 if the call expects no exception."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="pytest" | "self" | "cls"), attr=name), args=[_, *_]):
            return _RAISES.get(name, 0)
        case ast.Call(func=ast.Name(id="raises"), args=[_, *_]):
            return 1
    return 0


def _names(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Tuple(elts=parts):
            for part in parts:
                yield from _names(part)
