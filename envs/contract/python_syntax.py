"""Python source as a tree, from any thread.

CPython 3.11 counts how deep a tree is in one number for all threads. Two that parse at once can end each other with
"AST constructor recursion depth mismatch" (https://github.com/python/cpython/issues/106905).
"""

import ast
from threading import Lock

_ONE_AT_A_TIME = Lock()


def parse(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """``ast.parse``. Raises SyntaxError, ValueError, RecursionError and MemoryError, as that does."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, filename)


def parse_expression(source: str) -> ast.expr:
    """The tree of one expression. Raises as ``parse`` does."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, mode="eval").body
