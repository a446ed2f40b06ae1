"""A comparison of orders whose arms differ in more than their order, or whose verdict is not that of its interval."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scale.async_sample_efficiency import config_of, judged, plan_of

ROOT = Path(__file__).parents[3]
BENCHMARK = "benchmarks.scale.async_sample_efficiency"
PLAN = plan_of("short")


@pytest.mark.parametrize("plan", ["short", "long"])
def test_arms_differ_in_their_order_alone(plan):
    calm, ahead = (config_of(plan_of(plan), arm, 10).model_dump(mode="json") for arm in ("synchronous", "asynchronous"))
    assert (calm.pop("order")["kind"], ahead.pop("order")["kind"]) == ("synchronous", "asynchronous")
    assert calm == ahead


@pytest.mark.parametrize(
    ("differences", "shown"),
    [
        ((-0.2, -0.21, -0.19, -0.2, -0.2), "worse"),
        ((0.0, 0.01, -0.01, 0.0, 0.01), "not worse"),
        ((-0.2, 0.2, -0.1, 0.1, 0.0), "nothing is shown"),
    ],
)
def test_a_verdict_is_that_of_its_interval(differences, shown):
    lines = [{"arm": "synchronous", "seed": seed, "after": 0.8} for seed in range(5)]
    lines += [{"arm": "asynchronous", "seed": seed, "after": 0.8 + one} for seed, one in enumerate(differences)]
    assert judged(PLAN, lines)["shown"] == shown


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_it_runs_at_toy_size(tmp_path):
    out = tmp_path / "toy.json"
    command = [sys.executable, "-m", BENCHMARK, str(tmp_path / "runs"), "--run", "long", "--toy", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=900)
    told = json.loads(out.read_text())
    assert {(line["arm"], len(line["training"])) for line in told["runs"]} == {("synchronous", 2), ("asynchronous", 2)}
    warm = {(line["seed"], line["before"]) for line in told["runs"]}
    assert len(warm) == 2, "both arms of a seed begin alike"
