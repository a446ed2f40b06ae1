"""A table of lies that is not the result's, or a task that pays one and is learnt from."""

import json
from pathlib import Path

from benchmarks.runs.software import lies_table
from benchmarks.runs.software.lie_results import OUT, OUTCOMES, PAID
from manyturn.envs.software.tasks.lock_file import ours

ROOT = Path(__file__).parents[3]
RESULTS = lies_table.results_of(json.loads(OUT.read_text()))


def test_the_tables_of_the_page_are_those_of_the_result(capsys):
    lies_table.main()
    page = (ROOT / "docs/grading-results.md").read_text()
    tables = capsys.readouterr().out.strip().split("\n\n")
    assert len(tables) == 4 and all(f"\n\n{one}\n\n" in page for one in tables)


def test_no_task_that_pays_a_lie_is_learnt_from():
    entries = {entry.id: entry for entry in ours().entries}
    paying = [entries[name] for name, kinds in RESULTS.items() if PAID in kinds.values()]
    assert len(paying) > 10 and not any(entry.reached for entry in paying)
    assert RESULTS.keys() <= entries.keys() and {o for kinds in RESULTS.values() for o in kinds.values()} <= {*OUTCOMES}
