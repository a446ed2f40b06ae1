"""Work in a child that is not counted, a page with other figures, a run that measures again what it has."""

import json
import subprocess
import sys
import time

import psutil
import pytest

from benchmarks.speed import engines


def test_the_work_of_processes_below_is_counted():
    code = "import time\nwhile time.process_time() < 0.4: pass\nprint(time.process_time(), flush=True)\ninput()"
    shell = ["/bin/sh", "-c", f"{sys.executable} -c '{code}'; exit"]  # the child of a child, as Java is
    child = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    own = time.process_time()
    worked = float(child.stdout.readline())
    below = psutil.Process(child.pid).children(recursive=True)
    assert len(below) == 1
    counted = engines.processor_time(below) - own
    child.communicate(b"\n")
    assert worked <= counted < worked + 0.3


@pytest.mark.deep
def test_a_run_has_rows_ratios_and_notes_and_goes_on_where_it_was(tmp_path, monkeypatch):
    out, journal = tmp_path / "engines.json", tmp_path / "journal"
    words = ["--only", "w2-o3-q4", "--repeats", "2", "--seconds", "0.01", "--out", str(out), "--journal", str(journal)]
    monkeypatch.setattr(sys, "argv", [engines.__file__, *words])
    engines.main()
    before = journal.read_text()
    engines.main()
    assert journal.read_text() == before
    result = json.loads(out.read_text())
    row = result["rows"]["Treasure w2-o3-q4"]
    assert len(row["blocks"]) == 2 and 1 < row["median"] < 1000 and row["steps"] > 100
    for name, other in result["rows"].items():
        assert name.startswith("Treasure") or other.get("median", 0) > row["median"] or "textworld" in other["note"]
    assert len(result["ratios"]) in (0, 2)
    assert "| Treasure w2-o3-q4 |" in engines.section(result)


def test_the_page_has_the_figures_of_the_result():
    text = engines.PAGE.read_text()
    result = json.loads(engines.OUT.read_text()) if engines.OUT.exists() else None
    assert engines.page(text, result) == text


def test_every_pair_is_of_rows():
    assert {name for pair in engines.PAIRS for name in (pair.ours, pair.engine)} <= set(engines.ROWS)
