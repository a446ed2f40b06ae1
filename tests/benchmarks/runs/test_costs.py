"""A page of costs that says something else than the files, or that has a figure where nothing was measured."""

import json
import subprocess
import sys
from pathlib import Path

from manyturn.recipes import whole_runs

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "costs.md"


def test_the_page_of_costs_is_what_the_files_say():
    command = [sys.executable, "-m", "benchmarks.runs.costs"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    page = PAGE.read_text(encoding="utf-8")
    assert page == made.stdout, "make it again: python -m benchmarks.runs.costs > docs/costs.md"
    rows = {cells[1].strip(): cells for line in page.splitlines() if len(cells := line.split("|")) > 8}
    for name in whole_runs():
        file = ROOT / "benchmarks" / "results" / f"{name}.json"
        if not file.is_file():
            assert name not in rows
        else:
            minutes = [
                run["seconds"] / 60 for run in json.loads(file.read_text())["runs"] if run.get("variant") != "ungated"
            ]
            assert rows[name][4].strip() in (f"{min(minutes):.1f} to {max(minutes):.1f}", f"{min(minutes):.1f}")
