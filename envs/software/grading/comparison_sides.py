"""Divides what tests compare between two runs, so that no process meets both sides of a comparison.

Of ``assert double(3) == add(3, 3)`` one run is asked for ``double(3)`` and another for ``add(3, 3)``. The other side is
taken out of the file, and so are assignments that nothing else needs::

    expected = add(3, 3)                            pass
    __ask__.both(1, (double(3)), (expected))        __ask__.value(1, (double(3)))

What is written out, or was computed for something else too, cannot be taken out; such questions stay as they are.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.software.grading.answer_comparison import UNSTEADY
from manyturn.envs.software.grading.assertion_questions import BOTH, VALUE
from manyturn.envs.software.source.edits import Edit, Places, applied

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Naming = ast.Assign | ast.AnnAssign | ast.AugAssign
_CONVERTED = frozenset({"set", "frozenset", "dict", "list", "tuple", "float", "int", "str", "bytes", "sorted", "len"})


class Part(NamedTuple):
    """Questions of one run.

    Attributes:
        files: path -> content, of tests and copies as questions.
        answers: id of a test -> what the reference answers.
    """

    files: Mapping[str, bytes]
    answers: Mapping[str, list[Any]]


class Divided(NamedTuple):
    """A file of questions, as the first run has it and the second.

    Attributes:
        first: number of a question that is divided -> which side the first run is asked for, 0 or 1.
    """

    texts: tuple[bytes, bytes]
    first: Mapping[int, int]


def divided(text: bytes, together: Collection[int], rng: np.random.Generator) -> Divided:
    """Divide the questions of a file.

    Args:
        together: numbers of questions whose sides are asked together.
        rng: decides which side is asked first.
    """
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return Divided((text, text), {})
    calls = dict[int, tuple[_Scope, ast.Call]]()
    for function in _functions(tree):
        if compared := {number: call for number, call in _compared(function) if number not in together}:
            scope = _Scope(function)
            for number, call in compared.items():
                if all(map(scope.computes, call.args[1:])):
                    calls[number] = scope, call
    coins = rng.integers(2, size=1 + max(calls, default=0))  # one of each question, whichever are divided
    first = {number: int(coins[number]) for number in calls}
    places, texts = Places(text), list[bytes]()
    for run in (0, 1):
        edits, gone = list[Edit](), dict[_Scope, list[ast.expr]]()
        for number, (scope, call) in calls.items():
            side = first[number] ^ run
            gone.setdefault(scope, []).append(call.args[2 - side])
            pieces = (f"__ask__.{VALUE}({number}, (", places.span(call.args[1 + side]), "))")
            edits.append(Edit("", "", places.span(call), pieces))
        for scope, sides in gone.items():
            edits += [Edit("", "", places.span(one), ("pass",)) for one in scope.needless(sides)]
        texts.append(applied(text, edits))
    return Divided((texts[0], texts[1]), first)


def parts_of(files: Mapping[str, Divided], expected: Mapping[str, Sequence[Any]]) -> tuple[Part, Part]:
    """Questions of both runs and the right answers; the second has only tests that reach a divided question.

    Args:
        files: path -> a file.
        expected: id of a test -> what the reference answers where both sides are asked together.
    """
    answers = dict[str, list[Any]](), dict[str, list[Any]]()
    for test, pairs in expected.items():
        first = files[test.partition("::")[0]].first
        for run in (0, 1) if any(number in first for number, _ in pairs) else (0,):
            answers[run][test] = [
                [number, answer[first[number] ^ run] if number in first and answer is not UNSTEADY else answer]
                for number, answer in pairs
            ]
    texts = [{path: file.texts[run] for path, file in files.items()} for run in (0, 1)]
    return Part(texts[0], answers[0]), Part(texts[1], answers[1])


class _Scope:
    """A function with all that is in it, and which of its assignments can be done without."""

    def __init__(self, function: ast.AST):
        nodes = list(ast.walk(function))
        self._loads, self._named = dict[str, set[ast.AST]](), dict[str, list[_Naming]]()
        targets, fixed = set[ast.AST](), {one.arg for one in nodes if isinstance(one, ast.arg)}
        for one in nodes:
            if (target := _target(one)) is not None and isinstance(one, _Naming):
                self._named.setdefault(target.id, []).append(one)
                targets.add(target)
            elif isinstance(one, ast.Global | ast.Nonlocal):
                fixed.update(one.names)
        for one in nodes:
            if isinstance(one, ast.Name) and one not in targets:
                if isinstance(one.ctx, ast.Load):
                    self._loads.setdefault(one.id, set()).add(one)
                else:
                    fixed.add(one.id)
        for name in fixed:
            self._named.pop(name, None)

    def needless(self, gone: Sequence[ast.expr]) -> list[_Naming]:
        """Assignments of names that were needed in some expressions and in nothing else but each other."""
        namings, left = list[_Naming](), dict(self._named)
        while True:
            nodes = {node for one in (*gone, *namings) for node in ast.walk(one)}
            names = [name for name, some in left.items() if self._only_in(nodes, name, some)]
            if not names:
                return namings
            for name in names:
                namings += left.pop(name)

    def _only_in(self, nodes: set[ast.AST], name: str, named: Sequence[_Naming]) -> bool:
        loads = self._loads.get(name, set[ast.AST]())
        own = {node for one in named for node in ast.walk(one)}
        return bool(loads & nodes) and loads <= nodes | own

    def computes(self, side: ast.expr) -> bool:
        """True if something is computed that can be taken out with one side."""
        values = [one.value for one in self.needless([side])]
        return any(_computes(one) for one in (side, *values) if one is not None)


def _functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Functions that are in no other."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function):
            yield node
        else:
            yield from _functions(node)


def _compared(function: ast.AST) -> Iterator[tuple[int, ast.Call]]:
    for node in ast.walk(function):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="__ask__"), attr=kind),
                args=[ast.Constant(value=int(number)), _, _],
            ) if kind == BOTH:
                yield number, node


def _target(node: ast.AST) -> ast.Name | None:
    """The one name that a statement gives to a value that asks nothing."""
    match node:
        case ast.Assign(targets=[ast.Name() as name], value=value):
            pass
        case ast.AnnAssign(target=ast.Name() as name, value=ast.expr() as value):
            pass
        case ast.AugAssign(target=ast.Name() as name, value=value):
            pass
        case _:
            return None
    asks = any(isinstance(one, ast.Name) and one.id == "__ask__" for one in ast.walk(value))
    return None if asks else name


def _computes(node: ast.AST) -> bool:
    """True if this is more than literals and names."""
    match node:
        case ast.Constant() | ast.Name() | ast.expr_context() | ast.operator() | ast.unaryop():
            return False
        case ast.BinOp():
            return any(isinstance(one, ast.Name) or _computes(one) for one in (node.left, node.right))
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in _CONVERTED:
            return any(map(_computes, parts))
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.UnaryOp() | ast.Subscript() | ast.Slice():
            return any(map(_computes, ast.iter_child_nodes(node)))
        case ast.Starred():
            return _computes(node.value)
    return True
