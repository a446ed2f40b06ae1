"""A few faults of every class, each class in a process of its own; `make faults` injects many."""

import json
from pathlib import Path

import pytest
from forked import Forking
from needs_host import host

HERE = Path(__file__).parent
CLASSES = sorted(path.stem for path in HERE.glob("fault_*.py"))
LONG = (  # belong to the slow tests
    "fault_archive_hostile",
    "fault_checkpoint_damaged",
    "fault_clock",
    "fault_disk_full",
    "fault_driver_killed",
    "fault_engine_garbage",
    "fault_env_hangs",
    "fault_gradient_nan",
    "fault_hostile_text",
    "fault_link_slow",
    "fault_network_cut",
    "fault_node_disk_full",
    "fault_rank_killed",
    "fault_ray_head",
    "fault_sampler_killed",
    "fault_signals",
    "fault_two_writers",
    "fault_worker_threads",
)


@pytest.mark.deep
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in CLASSES]
)
def test_every_fault_is_survived_and_nothing_is_lost(
    name: str, forked: Forking, tmp_path: Path, record_property
) -> None:
    if name == "fault_ray_head":
        host("ray")
    counts = tmp_path / "counts.json"
    ran = forked(HERE / "run.py", "--only", name, "--json", counts)
    if name == "fault_memory_kill" and "left out" in ran.stdout:
        pytest.skip("no control group can be made here")
    assert counts.is_file(), ran.stdout + ran.stderr
    record_property("tally", json.loads(counts.read_text())["classes"][name])
    assert ran.returncode == 0, ran.stdout + ran.stderr
