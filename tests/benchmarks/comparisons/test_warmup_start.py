"""Starts that differ in more than their warm-up, or a verdict from seeds that disagree."""

import json

from benchmarks.comparisons.expectation import verdict
from benchmarks.comparisons.warmup_start import OUT, PLAN, summary_table
from manyturn.envs.contract.options.config_diff import changes
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import configure


def test_starts_differ_in_their_warmup_only():
    plain = [
        configure(load_recipe("quickstart"), {"warmup": start}).model_dump(mode="json")
        for start in PLAN["starts"].values()
    ]
    assert all(name.startswith("warmup.") for other in plain[:-1] for name in changes(plain[-1], other))
    assert all(changes(plain[-1], other) for other in plain[:-1])


def test_the_table_beside_the_result_is_made_of_its_runs():
    table = summary_table(json.loads(OUT.read_text(encoding="utf-8"))["runs"])
    assert OUT.with_suffix(".md").read_text(encoding="utf-8") == table + "\n"


def test_a_start_is_better_only_where_its_interval_over_seeds_leaves_out_nothing():
    expected = {"measure": "greedy", "arm": "ours", "against": "theirs"}

    def judged(gains):
        lines = [{"start": "theirs", "seed": seed, "greedy": 0.5} for seed in range(5)]
        lines += [{"start": "ours", "seed": seed, "greedy": 0.5 + gain} for seed, gain in enumerate(gains)]
        return verdict(expected, lines, "start")["verdict"]

    assert judged([0.1, 0.12, 0.11, 0.1, 0.13]) == "shown"
    assert judged([0.3, -0.2, 0.1, -0.1, 0.2]) == "not shown"
