"""A few faults of every class, each class in a process of its own; `make faults` injects many."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CLASSES = {path.stem: path.read_text() for path in sorted(HERE.glob("fault_*.py"))}
# To import the trainer or the engine takes longer than most of these faults.
HEAVY = [name for name, text in CLASSES.items() if "\nfrom short_runs " in text or "\nfrom drawing " in text]
LONG = (
    "fault_checkpoint_damaged",
    "fault_disk_full",
    "fault_engine_garbage",
    "fault_env_hangs",
    "fault_gradient_nan",
    "fault_hostile_text",
    "fault_signals",
    "fault_two_writers",
)


def classes(names: Iterable[str]) -> list[Any]:
    """The classes as parameters; those that take long belong to the slow tests."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in names]


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported the trainer, and forks for each class."""
    words = [sys.executable, HERE / "forking.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        yield process
        os.killpg(process.pid, signal.SIGKILL)  # with a class that hangs


@pytest.mark.parametrize("name", classes(sorted(CLASSES.keys() - HEAVY)))
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


@pytest.mark.parametrize("name", classes(HEAVY))
def test_every_fault_of_trainer_and_engine_is_survived_and_nothing_is_lost(
    name: str, forking: subprocess.Popen[str], tmp_path: Path, record_property
) -> None:
    counts, said = tmp_path / "counts.json", tmp_path / "said"
    assert forking.stdin is not None and forking.stdout is not None
    print(json.dumps([str(said), "--only", name, "--json", str(counts)]), file=forking.stdin, flush=True)
    status = forking.stdout.readline()
    assert counts.is_file(), said.read_text()
    record_property("tally", json.loads(counts.read_text())["classes"][name])
    assert status == "0\n", said.read_text()
