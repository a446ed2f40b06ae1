"""Operators that put a fault into a function: each names the places in a file where it can act, and the edit there.

The kinds are those of mutation testing and of SWE-smith's procedural bugs (arXiv 2504.21798), found by syntax tree and
made as edits of the text. Places inside f-strings and outside of functions are left alone.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.software.source.edits import Edit, Piece, Places, Span

Edits = Iterator[tuple[Span, tuple[Piece, ...]]]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Operator = Callable[["Scope", ast.AST], Edits]

OPERATORS: dict[str, Operator] = {}
"""By name, in alphabetical order once the module is loaded."""


class Scope:
    """A function whose nodes are being looked at.

    Attributes:
        places: of the file.
        name: qualified name.
        parameters: names of its parameters, without the first of a method.
        blocks: statements of the function -> the list that each stands in.
    """

    def __init__(self, places: Places, name: str, function: Function) -> None:
        self.places, self.name = places, name
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.parameters = [one.arg for one in named if one.arg not in ("self", "cls")]
        self.blocks = {}
        for node in ast.walk(function):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list):
                    self.blocks |= {statement: block for statement in block}


def operator(act: Operator) -> Operator:
    """Enter an operator under its function's name."""
    OPERATORS[act.__name__.strip("_")] = act
    return act


def edits(source: bytes) -> list[Edit]:
    """Every edit that an operator can make in a file, in the order of the text."""
    places, edits = Places(source), []
    for name, function in functions(parse(source)):
        scope = Scope(places, name, function)
        for node in _own(function):
            for title, act in OPERATORS.items():
                edits += [Edit(title, name, span, pieces) for span, pieces in act(scope, node)]
    return sorted(set(edits), key=lambda edit: (edit.span, edit.operator, str(edit.pieces)))


def functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, Function]]:
    """Functions with their qualified names; of two with the same name both."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield above + node.name, node
            yield from functions(node, f"{above}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{above}{node.name}.")
        else:
            yield from functions(node, above)


def _own(function: Function) -> Iterator[ast.AST]:
    """Nodes of a function's body, but not of functions and classes inside it, of f-strings, nor of its docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.ClassDef | ast.JoinedStr):
            continue
        yield node
        waiting += reversed(list(ast.iter_child_nodes(node)))


_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
_ARITHMETIC = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
}
_SIBLINGS = {
    "any": "all",
    "all": "any",
    "min": "max",
    "max": "min",
    "startswith": "endswith",
    "endswith": "startswith",
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "find": "rfind",
    "rfind": "find",
    "append": "extend",
    "extend": "append",
    "appendleft": "append",
    "popleft": "pop",
    "union": "intersection",
    "lower": "upper",
    "upper": "lower",
}

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


@cache
def _token(pattern: str) -> re.Pattern[bytes]:
    return re.compile(rb"[\s()\\]*?(%s)[\s()\\]*" % pattern.encode())


def _swapped(places: Places, gap: Span, old: str, new: str) -> Edits:
    """Another token for the one that stands between two operands, unless a comment stands there too."""
    if match := _token(old).fullmatch(places.text(gap)):
        yield (gap[0] + match.start(1), gap[0] + match.end(1)), (new,)


@operator
def comparison(scope: Scope, node: ast.AST) -> Edits:
    """``a < b`` becomes ``a <= b``, ``a is b`` becomes ``a is not b``, and so on."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        old, new = _COMPARISONS[type(node.ops[0])]
        yield from _swapped(scope.places, scope.places.between(node.left, node.comparators[0]), old, new)


@operator
def arithmetic(scope: Scope, node: ast.AST) -> Edits:
    """``a + b`` becomes ``a - b``, ``a += b`` becomes ``a -= b``, and so on; texts are left alone."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            if not _is_text(left) and not _is_text(right):
                yield from _swapped(scope.places, scope.places.between(left, right), *_ARITHMETIC[type(op)])
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in _ARITHMETIC and not _is_text(value):
            old, new = _ARITHMETIC[type(op)]
            yield from _swapped(scope.places, scope.places.between(target, value), old + "=", new + "=")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


@operator
def boolean(scope: Scope, node: ast.AST) -> Edits:
    """One ``and`` becomes ``or``, or the reverse."""
    if isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in pairwise(node.values):
            yield from _swapped(scope.places, scope.places.between(left, right), old, new)


@operator
def off_by_one(scope: Scope, node: ast.AST) -> Edits:
    """A whole number in decimal digits becomes one more, or one less."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        span = scope.places.span(node)
        if scope.places.text(span) == str(node.value).encode():
            yield span, (str(node.value + 1),)
            if node.value:
                yield span, (str(node.value - 1),)


@operator
def constant(scope: Scope, node: ast.AST) -> Edits:
    """``True`` becomes ``False``, or the reverse."""
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield scope.places.span(node), (str(not node.value),)


@operator
def negation(scope: Scope, node: ast.AST) -> Edits:
    """A condition becomes its contrary."""
    tests = node.ifs if isinstance(node, ast.comprehension) else []
    if isinstance(node, ast.If | ast.IfExp):
        tests = [node.test]
    for test in tests:
        span = scope.places.span(test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = scope.places.text(span).removeprefix(b"not").lstrip()
            yield span, ((span[1] - len(inner), span[1]),)
        elif not isinstance(test, ast.NamedExpr):
            yield span, ("not ", span) if isinstance(test, _ATOMS) else ("not (", span, ")")


@operator
def argument_order(scope: Scope, node: ast.AST) -> Edits:
    """Two arguments that stand next to each other change places."""
    if isinstance(node, ast.Call):
        yield from _exchanged(scope, node.args)


@operator
def returned_value(scope: Scope, node: ast.AST) -> Edits:
    """Parts of a returned tuple change places."""
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        yield from _exchanged(scope, node.value.elts)


def _exchanged(scope: Scope, nodes: list[ast.expr]) -> Edits:
    for left, right in pairwise(nodes):
        one, two = scope.places.span(left), scope.places.span(right)
        same = scope.places.text(one) == scope.places.text(two)
        if not same and not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
            yield (one[0], two[1]), (two, (one[1], two[0]), one)


@operator
def branches(scope: Scope, node: ast.AST) -> Edits:
    """``a if c else b`` becomes ``b if c else a``."""
    if isinstance(node, ast.IfExp):
        one, two = scope.places.span(node.body), scope.places.span(node.orelse)
        if scope.places.text(one) != scope.places.text(two):
            yield (one[0], two[1]), (two, (one[1], two[0]), one)


@operator
def boundary(scope: Scope, node: ast.AST) -> Edits:
    """An end of a slice or of ``range`` moves by one."""
    ends: list[tuple[ast.expr | None, str]] = []
    if isinstance(node, ast.Slice):
        ends = [(node.lower, " + 1"), (node.upper, " - 1")]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        ends = [(node.args[-1], " - 1")] if len(node.args) < 2 else [(node.args[0], " + 1"), (node.args[1], " - 1")]
    for end, shift in ends:
        if isinstance(end, _ATOMS):
            span = scope.places.span(end)
            yield span, (span, shift)


@operator
def sibling(scope: Scope, node: ast.AST) -> Edits:
    """A call goes to a function that does the like: ``min`` to ``max``, ``startswith`` to ``endswith``."""
    match node:
        case ast.Call(func=ast.Name(id=name) as called) if name in _SIBLINGS:
            yield scope.places.span(called), (_SIBLINGS[name],)
        case ast.Call(func=ast.Attribute(attr=name) as called) if name in _SIBLINGS:
            end = scope.places.span(called)[1]
            yield (end - len(name.encode()), end), (_SIBLINGS[name],)


@operator
def variable(scope: Scope, node: ast.AST) -> Edits:
    """Another parameter of the function is used."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in scope.parameters:
        at = scope.parameters.index(node.id)
        other = scope.parameters[(at + 1) % len(scope.parameters)]
        if other != node.id:
            yield scope.places.span(node), (other,)


@operator
def removed_assignment(scope: Scope, node: ast.AST) -> Edits:
    """A line that changes what has a value already is gone."""
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and _rebinds(scope, node)):
        yield from _without(scope, node)


def _rebinds(scope: Scope, node: ast.Assign) -> bool:
    target = node.targets[0]
    is_parameter = isinstance(target, ast.Name) and target.id in scope.parameters
    return len(node.targets) == 1 and (is_parameter or isinstance(target, ast.Attribute | ast.Subscript))


@operator
def removed_guard(scope: Scope, node: ast.AST) -> Edits:
    """An ``if`` that leaves the function or the loop early is gone."""
    if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
        leaves = isinstance(node.body[0], ast.Return | ast.Raise | ast.Continue | ast.Break)
        if leaves and scope.places.text(scope.places.span(node)).startswith(b"if"):
            yield from _without(scope, node)


@operator
def removed_call(scope: Scope, node: ast.AST) -> Edits:
    """A line that only calls something is gone."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _without(scope, node)


def _without(scope: Scope, statement: ast.stmt) -> Edits:
    lines = scope.places.lines(statement)
    if lines is not None and len(scope.blocks[statement]) > 1:
        yield lines, ()


OPERATORS = dict(sorted(OPERATORS.items()))
