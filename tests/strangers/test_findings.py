"""The table of findings must not name tests that have gone, nor leave a finding out."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROWS = re.findall(r"^\| (\d+) \| .* \| .* \| (.*) \|$", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_finding_has_its_row():
    assert [int(number) for number, _ in ROWS] == list(range(1, 40))


@pytest.mark.parametrize(("number", "cited"), ROWS, ids=[number for number, _ in ROWS])
def test_the_tests_of_a_finding_exist(number, cited):
    names = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", cited)
    assert names
    for file, test in names:
        tree = ast.parse((HERE.parent / file).read_text(encoding="utf-8"))
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert test in there or (not test and any(name.startswith("test_") for name in there)), f"{file}::{test}"


def test_readme_leads_to_the_pages():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = ("environments", "tools-and-roles", "training", "evaluation", "endpoints", "options", "credit")
    assert [page for page in pages if f"docs/{page}.md" not in readme] == []
