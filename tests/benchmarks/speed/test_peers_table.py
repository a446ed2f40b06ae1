"""Tables of peers that are not what the result files say."""

from pathlib import Path

from benchmarks.speed.peers_table import first, page, rows

ROOT = Path(__file__).parents[3]


def test_readme_has_the_table_of_the_results_and_each_row_names_both_sides():
    assert page(first()) in (ROOT / "README.md").read_text(encoding="utf-8")
    assert page(rows(), "../") in (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert len(rows()) == 5 and all(row.ours > 0 < row.peer for row in rows())
