"""Tests that their own file expects to fail, whatever sources do to marks while tests run."""

import ast
from collections.abc import Collection, Mapping

from manyturn.envs.contract.python_parser import parse


def expected_to_fail(tests: Mapping[str, bytes], ids: Collection[str]) -> frozenset[str]:
    """Ids of tests marked with ``xfail``: by function, class or file.

    Args:
        tests: path -> content of test files.
        ids: as pytest gives them, ``path::Class::function[parameters]``.
    """
    marked = {path: _marked(content) for path, content in tests.items() if b"xfail" in content}
    return frozenset(test for test in ids if _names(test) & marked.get(test.partition("::")[0], frozenset()))


def _names(test: str) -> set[str]:
    return {"pytestmark", *test.partition("[")[0].split("::")[1:]}


def _marked(content: bytes) -> frozenset[str]:
    """Names of functions and classes with the mark, and ``pytestmark`` if the whole file has it."""
    try:
        nodes = list(ast.walk(parse(content)))
    except (SyntaxError, ValueError):
        return frozenset()
    names = set[str]()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names |= {node.name for mark in node.decorator_list if "xfail" in ast.unparse(mark)}
        elif isinstance(node, ast.Assign) and "xfail" in ast.unparse(node.value):
            names |= {ast.unparse(target) for target in node.targets}
    return frozenset(names)
