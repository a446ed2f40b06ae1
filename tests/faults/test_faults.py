"""A few faults of every class, each class in a process of its own; `make faults` injects many."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CLASSES = sorted(path.stem for path in HERE.glob("fault_*.py"))


@pytest.mark.parametrize("name", CLASSES)
def test_every_fault_is_survived_and_nothing_is_lost(name: str, tmp_path: Path, record_property) -> None:
    counts = tmp_path / "counts.json"
    ran = subprocess.run(
        [sys.executable, HERE / "run.py", "--only", name, "--json", counts],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert counts.is_file(), ran.stdout + ran.stderr
    record_property("tally", json.loads(counts.read_text())["classes"][name])
    assert ran.returncode == 0, ran.stdout + ran.stderr
