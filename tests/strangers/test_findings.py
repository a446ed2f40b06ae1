"""The table of findings must not name tests that have gone, nor leave a finding out."""

from pathlib import Path

import pytest
from cited import gone, rows

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROWS = rows(HERE / "README.md")


def test_every_finding_has_its_row():
    assert [int(number) for number, _ in ROWS] == list(range(1, 54))


@pytest.mark.parametrize(("number", "cell"), ROWS, ids=[number for number, _ in ROWS])
def test_the_tests_of_a_finding_exist(number, cell):
    assert not gone(cell)


def test_readme_leads_to_the_pages():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = ("environments", "tools-and-roles", "training", "evaluation", "endpoints", "options", "credit")
    assert [page for page in pages if f"docs/{page}.md" not in readme] == []
