"""By which literals a program can tell that it meets a test that it knows: those that its input is made of.

A clue is a literal in its place, a literal that stands so often, or the length of a list. They are those of the
question itself, of what the test gives its names before, of its parameters, and of helpers and constants of its file.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.software.grading.assertion_questions import is_constant
from manyturn.envs.software.grading.literal_mutations import literals_of

Clue = tuple[str, int, str]
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(4096)
def clues(text: bytes, test: str, question: int, side: int, case: tuple[int, int]) -> frozenset[Clue]:
    """The clues of one side of a question.

    Args:
        text: the file of the test or of its copy.
        test: id without parameters, of which only what follows the path counts.
        case: which of the test's parameters, and how many there are.

    >>> text = b"def test():\\n    x = f([1, 1])\\n    __ask__.value(1, (x))\\n"
    >>> sorted(clues(text, "t.py::test", 1, 0, (0, 1)))
    [('at', 0, '1'), ('at', 1, '1'), ('list', 0, '2'), ('often', 1, '1'), ('often', 2, '1')]
    """
    sides = _sides(text).get(question, [])
    inside = _clues(list(_literals(sides[side])), "") if side < len(sides) else ()
    return _outside(text, test.partition("::")[2], case).union(inside)


def comparand(text: bytes, question: int) -> str:
    """Written-out side of a condition that a test asks for; empty if the question has none.

    >>> comparand(b"def test():\\n    __ask__.truth(1, (('b') in (page(3))))\\n", 1)
    "'b'"
    """
    return _comparands(text).get(question, "")


@lru_cache(64)
def _comparands(text: bytes) -> dict[int, str]:
    """Number of a question for a truth -> the side of its comparison that is made of literals."""
    written = dict[int, str]()
    for node in ast.walk(parse(text)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="__ask__"), attr="truth"),
                args=[ast.Constant(value=int(number)), ast.Compare(left=left, comparators=[right])],
            ):
                sides = [side for side in (left, right) if is_constant(side)]
                written[number] = ast.unparse(sides[0]) if len(sides) == 1 else ""
    return written


@lru_cache(1024)
def _outside(text: bytes, name: str, case: tuple[int, int]) -> frozenset[Clue]:
    """Values that the test does not write in its own body."""
    test, nodes = literals_of(text, name)
    if test is None:
        return frozenset()
    own = {id(node) for statement in test.body for node in ast.walk(statement)}
    heads = {id(node) for head in test.decorator_list for node in ast.walk(head)}
    theirs = _case(test, *case)
    head = [node for node in nodes if id(node) in heads]
    head = head if theirs is None else list(_literals([theirs]))
    rest = [node for node in nodes if id(node) not in own and id(node) not in heads]
    return frozenset([*_clues(head, "head "), *_clues(rest, "file ")])


def _case(test: _Function, number: int, count: int) -> ast.AST | None:
    """Statements of one of several cases that are written one after the other."""
    for head in test.decorator_list:
        match head:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, ast.List() | ast.Tuple() as cases, *_]):
                if len(cases.elts) == count:
                    return cases.elts[number]
    return None


def _clues(nodes: Sequence[ast.AST], where: str) -> Iterator[Clue]:
    constants = [repr(node.value) for node in nodes if isinstance(node, ast.Constant)]
    lists = [node for node in nodes if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict)]
    yield from ((f"{where}at", at, value) for at, value in enumerate(constants))
    for value, count in Counter(constants).items():
        yield from ((f"{where}often", times, value) for times in range(1, count + 1))
    for at, node in enumerate(lists):
        size = len(node.keys) if isinstance(node, ast.Dict) else len(node.elts)
        yield (f"{where}list", at, str(size))


def _literals(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant | ast.List | ast.Tuple | ast.Set | ast.Dict):
                yield part


@lru_cache(64)
def _sides(text: bytes) -> dict[int, list[list[ast.AST]]]:
    """Number of a question of values -> what each side of it is made of."""
    rows = dict[int, list[list[ast.AST]]]()
    for function in ast.walk(parse(text)):
        if not isinstance(function, _Function):
            continue
        made = list(_made(function))
        for node in ast.walk(function):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="__ask__"), attr="value" | "both" | "truth"),
                    args=[ast.Constant(value=int(number)), *sides],
                ):
                    rows[number] = [_expanded(side, made) for side in sides]
    return rows


def _made(function: ast.AST) -> Iterator[tuple[set[str], ast.AST, set[str]]]:
    """Definitions in a function: the names, the node that gives them values, and the names in it."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                yield _names(target), node, _names(node)
            case ast.For(target=target, iter=values) | ast.comprehension(target=target, iter=values):
                yield _names(target), values, _names(values)
            case ast.withitem(context_expr=value, optional_vars=ast.AST() as target):
                yield _names(target), value, _names(value)
            case ast.Expr(value=ast.Call() as call) if "__ask__" not in _names(call):
                yield _names(call), call, _names(call)  # which may change what it is given


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _expanded(side: ast.AST, made: Sequence[tuple[set[str], ast.AST, set[str]]]) -> list[ast.AST]:
    names, left, nodes = _names(side), list(made), [side]
    while used := [one for one in left if one[0] & names]:
        left = [one for one in left if one not in used]
        nodes += [node for _, node, _ in used]
        names = names.union(*[more for _, _, more in used])
    return nodes
