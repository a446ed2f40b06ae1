"""A benchmark of scale that no longer runs, or whose rows are not of what they name."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from needs_host import host

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(1000)  # many processes, on a machine that may be busy


def result(folder: Path, name: str, *words: str) -> dict[str, Any]:
    """The result that a benchmark writes."""
    out = folder / "result.json"
    command = [sys.executable, "-m", f"benchmarks.scale.{name}", *words, "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=900)
    return json.loads(out.read_text())


@pytest.mark.slow
def test_episodes_at_hosts_are_open_at_once(tmp_path):
    local, one, several = result(tmp_path, "hosts", "--toy")["rows"]
    assert local["open_at_once"] == one["open_at_once"] == several["open_at_once"] == 40
    assert local["hosts_mb"] == 0 < one["hosts_mb"] < several["hosts_mb"]


def test_hosts_on_ray_have_their_rows(tmp_path):
    host("ray")
    one, several = result(tmp_path, "ray_throughput", "--toy")["rows"]
    assert (one["hosts"], several["hosts"]) == (1, 2) and one["episodes_per_s"] > 0 < several["episodes_per_s"]


@pytest.mark.slow
def test_every_order_plays_the_same_tasks(tmp_path):
    for world in result(tmp_path, "async_throughput", "--toy")["worlds"]:
        synchronous, *others = world["rows"]
        orders = [row["name"].removeprefix("asynchronous, k = ") for row in others]
        assert synchronous["name"] == "synchronous" and orders == ["1", "4", "8", "4, any", "4, drop"]
        for row, order in zip(others, orders, strict=True):
            assert row["staleness_max"] <= int(order[0]) and (row["length_bias"] == 0 or "drop" in order)
            assert row["predicted_per_hour"] >= synchronous["predicted_per_hour"]


@pytest.mark.slow
def test_a_predicted_duration_is_compared_with_the_run(tmp_path):
    few = ["--recipes", "quickstart", "--steps", "2", "--first", "1", "2"]
    [row] = result(tmp_path, "duration_prediction", *few)["rows"]
    assert row["steps"] == 2 and row["minutes"] > 0
    assert {plan["planned_minutes"] > 0 for plan in row["by_first_steps"].values()} == {True}


@pytest.mark.slow
def test_a_driver_plays_right_while_a_host_gets_hostile_messages(tmp_path):
    figures = result(tmp_path, "host_robustness", "--toy")
    assert figures["joins"] >= 1 and figures["episodes"] == figures["right"] == 4 * figures["joins"]
    endings = figures["endings"]
    assert len(endings) == 11 and {sum(counts.values()) for counts in endings.values()} == {2}
    assert not any("busy" in ending or ending == "unread" for counts in endings.values() for ending in counts)
    assert figures["host_mb"] < 1000 and figures["below_mb"] < 5000 and figures["ended_with"] == 143


def test_the_table_of_hostile_messages_is_that_of_the_result():
    command = [sys.executable, "-m", "benchmarks.serving.host_robustness_table"]
    made = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert made.strip() in (ROOT / "docs/host-safety.md").read_text() and made.count("\n") == 13
