"""The table of what was corrected must not name tests that have gone."""

from pathlib import Path

import pytest
from cited import gone, rows

ROWS = rows(Path(__file__).with_name("README.md"))


def test_every_finding_has_its_row():
    assert [int(number) for number, _ in ROWS] == list(range(1, 25))


@pytest.mark.parametrize(("number", "cell"), ROWS, ids=[number for number, _ in ROWS])
def test_the_tests_of_a_correction_exist(number, cell):
    assert not gone(cell)
