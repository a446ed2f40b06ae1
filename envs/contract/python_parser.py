"""Python source as a tree, from any thread.

CPython 3.11 counts how deep a tree is in one number for the interpreter. A parse that begins inside another one ends it
with "AST constructor recursion depth mismatch" (https://github.com/python/cpython/issues/106905). Collecting garbage is
what lets it in: a finalizer hands over to another thread, or writes a traceback, for which Python 3.11 parses lines.
"""

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_ONE_AT_A_TIME = Lock()


@contextmanager
def _undisturbed() -> Iterator[None]:
    with _ONE_AT_A_TIME:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                gc.enable()


def parse(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """``ast.parse``. Raises SyntaxError, ValueError, RecursionError and MemoryError, as that does."""
    with _undisturbed():
        return ast.parse(source, filename)


def parse_expression(source: str) -> ast.expr:
    """The tree of one expression. Raises as ``parse`` does."""
    with _undisturbed():
        return ast.parse(source, mode="eval").body
