"""Markdown tables of figures."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; "Nothing yet." without rows.

    >>> print(table(("world", "success"), [("maze", "0.96")]))
    | world | success |
    | --- | --- |
    | maze | 0.96 |
    """
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) if len(lines) > 2 else "Nothing yet."
