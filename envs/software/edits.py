"""An edit of a file: a span of bytes, and what stands there instead, in pieces of our own and of the file.

An edit holds no text of the file that it is for, and leaves everything else as it was: comments, blanks, line ends.
"""

import ast
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

Span = tuple[int, int]
Piece = str | Span


class Edit(NamedTuple):
    """One change.

    Attributes:
        operator: name of the operator that it is an instance of.
        function: qualified name of the function that it is in, as ``__qualname__`` gives it.
        span: bytes [start, end) of the file.
        pieces: texts, and spans of the unchanged file, that stand there instead.
    """

    operator: str
    function: str
    span: Span
    pieces: tuple[Piece, ...]

    def text(self, source: bytes) -> bytes:
        """Replacement text."""
        return b"".join(p.encode() if isinstance(p, str) else source[p[0] : p[1]] for p in self.pieces)


def applied(source: bytes, edits: Sequence[Edit]) -> bytes:
    """The file after all edits, whose spans are of the unchanged file. Raises ValueError if they overlap."""
    ordered = sorted(edits, key=lambda edit: edit.span)
    if any(before.span[1] > after.span[0] for before, after in pairwise(ordered)):
        raise ValueError("edits overlap")
    pieces, at = [], 0
    for edit in ordered:
        pieces += [source[at : edit.span[0]], edit.text(source)]
        at = edit.span[1]
    return b"".join([*pieces, source[at:]])


_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


class Places:
    """Byte positions of a syntax tree's nodes in the file."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def span(self, node: ast.AST) -> Span:
        """Bytes [start, end) of a node, without parentheses around it."""
        line, column, end_line, end_column = _place(node)
        return self._lines[line - 1] + column, self._lines[end_line - 1] + end_column

    def between(self, left: ast.AST, right: ast.AST) -> Span:
        """Bytes from the end of a node to the start of another."""
        return self.span(left)[1], self.span(right)[0]

    def text(self, span: Span) -> bytes:
        return self.source[span[0] : span[1]]

    def lines(self, node: ast.AST) -> Span | None:
        """The whole lines of a statement, or None where something else stands on them."""
        line, _, end_line, _ = _place(node)
        first, last = self._lines[line - 1], self._lines[end_line]
        start, end = self.span(node)
        rest = self.source[end:last].strip()
        if self.source[first:start].strip() or (rest and not rest.startswith(b"#")):
            return None
        return first, last


def _place(node: ast.AST) -> tuple[int, int, int, int]:
    """First line and column, last line and column; only nodes that stand somewhere have them."""
    first, column, last, end = (getattr(node, name) for name in _PLACE)
    return first, column, last, end
