"""Tests that a page cites by their place below ``tests/``."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def rows(page: Path) -> list[tuple[str, str]]:
    """Number of each finding in a page's table, and the cell with its tests."""
    return re.findall(r"^\| (\d+) \| .* \| .* \| (.*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)


def gone(cell: str) -> list[str]:
    """Tests that a cell names and that do not exist; a file alone stands for any test in it."""
    names = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", cell)
    assert names
    missing = []
    for file, test in names:
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        if test not in there and (test or not any(name.startswith("test_") for name in there)):
            missing.append(f"{file}::{test}")
    return missing
