import ast
import functools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.software.mutation.operators import OPERATORS, edits
from manyturn.envs.software.source.edits import Edit, applied
from manyturn.envs.software.source.libraries import LIBRARIES, library
from manyturn.envs.software.source.library_sources import tree

INSTALLED = "networkx"  # with the project, so that it is always there
_SMALL = 5_000  # bytes
CASES = {
    "comparison": ("return a < b", {"return a <= b"}),
    "arithmetic": ("return a + b", {"return a - b"}),
    "boolean": ("return a and b and c", {"return a or b and c", "return a and b or c"}),
    "off_by_one": ("return 3", {"return 4", "return 2"}),
    "constant": ("return f(x=True)", {"return f(x=False)"}),
    "negation": ("return a if not b else c", {"return a if b else c"}),
    "argument_order": ("return f(a, g(b, 1))", {"return f(g(b, 1), a)", "return f(a, g(1, b))"}),
    "returned_value": ("return a, b", {"return b, a"}),
    "branches": ("return a if c else b", {"return b if c else a"}),
    "boundary": ("return x[a:b]", {"return x[a + 1:b]", "return x[a:b - 1]"}),
    "sibling": ("return a.lstrip(any(b))", {"return a.rstrip(any(b))", "return a.lstrip(all(b))"}),
    "variable": ("return p", {"return q"}),
    "removed_assignment": ("p += 1\n    return p", {"return p"}),
    "removed_guard": ("if p:\n        return 0\n    return p", {"return p"}),
    "removed_call": ("p.sort()\n    return p", {"return p"}),
}


def in_function(body: str) -> bytes:
    return f"def function(p, q):\n    {body}\n".encode()


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_makes_the_edits_that_its_name_says(operator):
    body, expected = CASES[operator]
    source = in_function(body)
    made = {applied(source, [edit]) for edit in edits(source) if edit.operator == operator}
    assert made == {in_function(text) for text in expected}


@pytest.mark.parametrize(
    "text",
    [
        "f'{1 + 2}' 'a'",
        "'''docs: 1 < 2'''",
        "a[:0x10]",
        "f(*a, *b)",
        "a  # and\n    (b)",
        "(a \\\n    in b)",
        "x = 1",
    ],
)
def test_what_is_no_place_for_a_fault_is_left_alone(text):
    source = in_function(text)
    for edit in edits(source):
        assert b"f'" not in source[edit.span[0] : edit.span[1]]
        assert ast.dump(ast.parse(applied(source, [edit]))) != ast.dump(ast.parse(source))


def test_a_file_without_functions_and_a_docstring_have_no_edits():
    assert edits(b"LIMIT = 3\nif LIMIT < 4:\n    LIMIT += 1\n") == []
    assert edits(b"def function():\n    'True, 1 < 2'\n") == []


def test_the_only_statement_of_a_block_is_not_removed():
    source = in_function("if p:\n        q.clear()\n    else:\n        p.clear()")
    assert not [edit for edit in edits(source) if edit.operator == "removed_call"]


class Outer:
    class Inner:
        def method(self, limit):
            def function():
                return limit + 1

            return function if limit else None


def test_functions_have_the_names_that_python_gives_them():
    names = {edit.function for edit in edits(Path(__file__).read_bytes())}
    assert Outer.Inner.method.__qualname__ in names
    assert Outer.Inner().method(2).__qualname__ in names


@functools.cache
def real_edits(name: str) -> list[tuple[str, Edit]]:
    """Every edit of the small files of a library."""
    known = library(name)
    files = tree(known)
    small = [path for path in files if known.counts(path) and len(files[path]) < _SMALL]
    return [(path, edit) for path in small for edit in edits(files[path])]


@functools.cache
def dumped(name: str, path: str) -> str:
    return ast.dump(ast.parse(tree(library(name))[path]))


def check_an_edit(name: str, path: str, edit: Edit) -> None:
    source = tree(library(name))[path]
    broken = applied(source, [edit])
    start, end = edit.span
    assert broken[:start] == source[:start]
    assert broken[len(broken) - (len(source) - end) :] == source[end:]
    assert ast.dump(ast.parse(broken)) != dumped(name, path)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_edit_of_real_code_parses_differs_and_keeps_all_else(data):
    some = real_edits(INSTALLED)
    check_an_edit(INSTALLED, *some[data.draw(st.integers(0, len(some) - 1))])


def test_every_operator_acts_on_real_code():
    assert {edit.operator for _, edit in real_edits(INSTALLED)} == set(OPERATORS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, known in LIBRARIES.items() if known.archive])
def test_every_edit_of_a_library_parses_differs_and_keeps_all_else(name, sources):
    assert sources(name)
    for path, edit in real_edits(name):
        check_an_edit(name, path, edit)
