"""Tests with other literals: numbers, texts and truth values in what chosen tests do, and in what they say to expect.

A test whose literals have changed means nothing by itself: some became inputs that nobody has seen, some expectations
that are wrong. What it computes is still a question that a program can answer, and that a right one answers as the
reference does.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.software.source.edits import Edit, Places, Span, applied

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
_FOR_PEOPLE = frozenset({"match", "reason", "id", "ids", "msg", "err_msg", "scope", "name"})
_BEFORE = frozenset({"setup_method", "setup_class", "setUp", "setUpClass"})
_SHARES = (0.06, 0.15, 0.3, 0.6)  # of literals that change, in one copy after the other
_SWAPPED = 0.15  # of neighbours in a list that change places
_RESIZED = 0.25  # of lists that are longer or shorter, for a size that is always the same can be known
_PARTS = 0.2  # of texts with separators of which a part is gone or there twice
_WIDE = 10


def altered(source: bytes, tests: Iterable[str], copy: int, rng: np.random.Generator) -> bytes:
    """A file in which some literals of tests are others, without most of its other tests.

    Args:
        tests: as ``Class::function``, without parameters; those that are not in the file are passed over.
        copy: number of the copy, on which it depends how much is changed.
    """
    places, share = _read(source)[1], _SHARES[copy % len(_SHARES)]
    names = tuple(tests)
    pool = dict.fromkeys(_idle(source, names), "pass")
    for name in names:
        literals, kinds = _of(source, name)
        texts = {span: _other(literals[span], places, kinds, rng) for span in sorted(literals)}
        literal_at = {span: text for span, text in texts.items() if text is not None}
        chosen = [span for span in literal_at if rng.random() < share]
        chosen = chosen or ([list(literal_at)[rng.integers(len(literal_at))]] if literal_at else [])
        if rng.random() < 0.5:  # what is equal stays equal, as in a test of equality; a copy's number tells nobody
            first = {_value(literals[span]): span for span in reversed(chosen)}
            pool |= {
                span: literal_at[first[_value(literals[span])]]
                for span in literal_at
                if _value(literals[span]) in first
            }
        else:
            pool |= {span: literal_at[span] for span in chosen}
        lists = [span for span in sorted(literals) if isinstance(literals[span], ast.List) or span in _given(source)]
        sure = int(rng.integers(len(lists))) if lists and rng.random() < 0.25 else None
        chosen = [span for at, span in enumerate(lists) if at == sure or rng.random() < _RESIZED]
        pool |= {span: text for span in chosen if (text := _resized(literals[span], places, rng)) is not None}
    edits, end = list[Edit](), 0
    for span in sorted(pool, key=lambda span: (span[0], -span[1])):
        if span[0] >= end:  # not in a list whose neighbours change places, nor in a test that is gone
            edits.append(Edit("", "", span, (pool[span],)))
            end = span[1]
    return applied(source, edits)


@lru_cache(4)
def _read(source: bytes) -> tuple[ast.Module, Places]:
    """A file, which is copied many times in a row."""
    return parse(source), Places(source)


@lru_cache(4)
def _given(source: bytes) -> frozenset[Span]:
    """Tuples of two or more that are arguments of a call. Others may have to be as long as they are."""
    tree, places = _read(source)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    given = (part for call in calls if not _is_for_cases(call) for part in call.args)
    return frozenset(places.span(part) for part in given if isinstance(part, ast.Tuple) and len(part.elts) > 1)


def _is_for_cases(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "parametrize"


@lru_cache(64)
def _of(source: bytes, name: str) -> "tuple[Mapping[Span, ast.AST], _Kinds]":
    """Literals of a test by their places, and what they have in common."""
    tree, places = _read(source)
    node_at = {places.span(node): node for node in _reach(tree, name.split("::"))}
    return node_at, _kinds(node_at.values())


def literals_of(source: bytes, name: str) -> tuple[_Function | None, list[ast.AST]]:
    """A test, and what ``altered`` may change for it: its own literals, and those of what it uses in its file."""
    tree, names = _read(source)[0], name.split("::")
    return _test_of(tree, names)[0], list(_reach(tree, names))


@lru_cache(4)
def _idle(source: bytes, names: tuple[str, ...]) -> Sequence[Span]:
    """Places of other tests than these, which nothing in the file uses: collecting them in each copy takes long."""
    tree, places = _read(source)
    names_used = {part for name in names for part in name.split("::")}
    names_used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names_used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names_used |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names_used |= {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    idle = list[Span]()
    for node in (node for body in bodies for node in body):
        if _is_test(node) and node.name not in names_used:
            start, end = places.span(node)
            heads = [places.span(one)[0] for one in node.decorator_list]
            idle.append((source.rindex(b"@", 0, min(heads)) if heads else start, end))
    return idle


def _is_test(node: ast.stmt) -> "TypeGuard[_Function | ast.ClassDef]":
    if isinstance(node, _FUNCTIONS):
        return node.name.startswith("test")
    return isinstance(node, ast.ClassDef) and "Test" in node.name


def _test_of(tree: ast.Module, names: list[str]) -> tuple[_Function | None, list[list[ast.stmt]]]:
    """A test by its name, and the bodies in which it was looked for."""
    bodies: list[list[ast.stmt]] = [tree.body]
    for name in names[:-1]:
        klass = next((node for node in bodies[0] if isinstance(node, ast.ClassDef) and node.name == name), None)
        if klass is None:
            return None, []
        bodies = [one.body for one in _with_bases(tree, klass)]
    own = (node for body in bodies for node in body if isinstance(node, _Function))
    return next((node for node in own if node.name == names[-1]), None), bodies


def _reach(tree: ast.Module, names: list[str]) -> Iterator[ast.AST]:
    """Literals of a test: its own, and those of what it uses in its file, through whatever calls it there."""
    test, bodies = _test_of(tree, names)
    if test is None:
        return
    own = [node for body in bodies for node in body if isinstance(node, _Function)]
    inside = len(names) > 1
    statements: list[ast.stmt] = [test, *(node for node in own if inside and node.name in _BEFORE)]
    for node in statements:  # which grows meanwhile
        used, of_self = _used(node)
        for body in bodies if inside else ():
            statements += [statement for statement in _named(body, used | of_self) if statement not in statements]
        statements += [statement for statement in _named(tree.body, used) if statement not in statements]
    for node in statements:
        yield from _literals(node)


def _with_bases(tree: ast.Module, klass: ast.ClassDef) -> list[ast.ClassDef]:
    """A class and those above it, as far as they are at the top of its file."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    family = [klass]
    for one in family:  # which grows meanwhile
        names = [base.id for base in one.bases if isinstance(base, ast.Name)]
        family += [classes[name] for name in names if name in classes and classes[name] not in family]
    return family


def _used(node: ast.AST) -> tuple[set[str], set[str]]:
    """Names that are used, as variables or as fixtures, and what is used of ``self``."""
    names, of_self = set[str](), set[str]()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                of_self.add(name)
    return names, of_self


def _named(body: Iterable[ast.stmt], names: set[str]) -> Iterator[ast.stmt]:
    """Definitions in a body: assignments and functions, but no other tests."""
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if name in names:
                yield node
            case ast.FunctionDef(name=name) if name in names and not name.startswith("test"):
                yield node


def _literals(node: ast.AST) -> Iterator[ast.AST]:
    """Literals below a node, and lists in which neighbours can change places."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | bytes()):
            yield node
            return
        case ast.JoinedStr() | ast.Expr(value=ast.Constant()) | ast.match_case() | ast.arguments():
            return
        case ast.keyword(arg=name) if name in _FOR_PEOPLE:
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(id="__ask__")), args=[_, *values], keywords=named):
            for value in (*values, *named):  # the first is the number of the question
                yield from _literals(value)
            return
        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, *values]):
            for value in values:  # the cases themselves stay as many as their ids
                for case in ast.iter_child_nodes(value) if isinstance(value, ast.List) else [value]:
                    yield from _literals(case)
            return
        case ast.List(elts=[_, _, *_]) | ast.Tuple(elts=[_, _, *_], ctx=ast.Load()):
            yield node
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)


class _Kinds(NamedTuple):
    """Common properties of a test's literals, which a specification may require of inputs.

    Attributes:
        least: no number is smaller; at most 2.
        signs: letters and digits of its texts.
    """

    least: int
    signs: frozenset[str]


def _kinds(nodes: Iterable[ast.AST]) -> _Kinds:
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    texts = [
        value if isinstance(value, str) else value.decode("latin-1")
        for value in values
        if isinstance(value, str | bytes)
    ]
    return _Kinds(min([2, *numbers]) if numbers else 0, frozenset("".join(texts)))


def _other(node: ast.AST, places: Places, kinds: _Kinds, rng: np.random.Generator) -> str | None:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return _swapped(node, parts, places, rng) if rng.random() < _SWAPPED else None
        case ast.Constant(value=value):
            new = _changed(value, kinds, rng)
            return None if new == value and type(new) is type(value) else repr(new)
    return None


def _value(node: ast.AST) -> object:
    """Common kind of equal literals; everything else is unlike anything."""
    return (type(node.value), repr(node.value)) if isinstance(node, ast.Constant) else node


def _resized(node: ast.AST, places: Places, rng: np.random.Generator) -> str | None:
    """A list or tuple of two or more without one of its elements, or with one of them twice."""
    assert isinstance(node, ast.List | ast.Tuple)
    at, parts = int(rng.integers(len(node.elts))), node.elts
    if any(isinstance(part, ast.Starred) for part in parts):
        return None
    texts = [places.text(places.span(part)).decode() for part in parts]
    texts[at : at + 1] = [] if rng.random() < 0.5 else [texts[at], texts[at]]
    return f"[{', '.join(texts)}]" if isinstance(node, ast.List) else f"({', '.join(texts)},)"


def _swapped(node: ast.AST, parts: list[ast.expr], places: Places, rng: np.random.Generator) -> str | None:
    """A list with two neighbours in each other's place."""
    at = int(rng.integers(len(parts) - 1))
    one, two = parts[at], parts[at + 1]
    if any(isinstance(part, ast.Starred | ast.GeneratorExp) for part in (one, two)):
        return None
    (start, end), (a, b), (c, d) = places.span(node), places.span(one), places.span(two)
    pieces = ((start, a), (c, d), (b, c), (a, b), (d, end))
    return b"".join(places.text(piece) for piece in pieces).decode()


def _changed(value: Any, kinds: _Kinds, rng: np.random.Generator) -> Any:
    match value:
        case bool():
            return not value
        case int():
            near = value + int(rng.choice([-2, -1, 1, 2]))
            wide = int(rng.integers(kinds.least, 2 * value + _WIDE)) if 0 <= value < 1 << 40 else value + 1
            return max(kinds.least, near) if rng.random() < 0.5 else wide
        case float():
            return round(value * rng.uniform(0.5, 1.6), 3)
        case str():
            return _text(value, kinds.signs, rng)
        case bytes() if value.isascii():
            return _text(value.decode(), kinds.signs, rng).encode()
    return value


def _text(text: str, texts: frozenset[str], rng: np.random.Generator) -> str:
    """A text of which a letter or digit is another, gone, twice there, or its neighbour's; or a part between signs."""
    spots = [at for at, sign in enumerate(text) if sign.isalnum()]
    if not spots:
        return text
    if (between := sorted({sign for sign in text.strip() if not sign.isalnum()})) and rng.random() < _PARTS:
        return _with_parts(text, between[rng.integers(len(between))], rng)
    at = spots[rng.integers(len(spots))]
    sign, rest = text[at], text[at + 1 :]
    match rng.integers(4):
        case 0:
            signs = next((s for s in ("0123456789", "abcdefghijklmnop", "ABCDEFGHIJKLMNOP") if sign in s), "xyz")
            usual = sorted(texts.intersection(signs))  # a text of 0 and 1 may have to be one
            signs = "".join(usual) if len(usual) > 1 else signs
            return text[:at] + signs[rng.integers(len(signs))] + rest
        case 1 if len(text) > 1:
            return text[:at] + rest
        case 2 if rest and rest[0].isalnum():
            return text[:at] + rest[0] + sign + rest[1:]
    return text[:at] + sign + text[at:]


def _with_parts(text: str, between: str, rng: np.random.Generator) -> str:
    """A text without one of its parts between separators, or with one of them twice."""
    parts = text.split(between)
    at = int(rng.integers(len(parts)))
    parts[at : at + 1] = [] if rng.random() < 0.5 else [parts[at], parts[at]]
    return between.join(parts)
