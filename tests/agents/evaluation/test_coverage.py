"""Intervals that hold the truth less often than they promise; benchmarks.runs.interval_coverage is the long form."""

import numpy as np
import pytest

from benchmarks.runs import interval_coverage as coverage
from manyturn.agents.evaluation.seed_intervals import spread, spread_ends
from manyturn.agents.evaluation.statistics import flip_p, interval_ends, mean_interval, paired_difference, sign_flip_p

HARD = "Beta(0.6, 0.9)"
# Three standard errors of a share from so many simulations.
SIMULATIONS = 3000
SLACK = 3 * (0.05 * 0.95 / SIMULATIONS) ** 0.5


def by_task(rows):
    return {f"task {i}": list(map(float, row)) for i, row in enumerate(rows)}


@pytest.mark.parametrize("tasks", [20, 50, 200])
@pytest.mark.parametrize("repeats", [1, 4, 8])
def test_the_interval_of_success_holds_the_truth_as_often_as_it_says(tasks, repeats):
    found = coverage.interval_cell(HARD, tasks, repeats, SIMULATIONS)
    assert 0.935 - SLACK <= found["covered"] <= 0.965 + SLACK, found


@pytest.mark.parametrize("tasks", [20, 50, 200])
def test_a_policy_is_told_apart_from_itself_no_more_often_than_agreed(tasks):
    found = coverage.pair_cell(HARD, tasks, 8, 1500)
    for key in ("interval_rejects", "flip_rejects"):
        assert 0.04 - 0.016 <= found[key] <= 0.06 + 0.016, found


def test_pass_at_k_and_pass_hat_k_are_what_counting_all_choices_gives_for_all_small_cases():
    found = coverage.attempts()
    assert found["cases"] == 240 and found["largest_error"] < 1e-12 and found["largest_bias"] < 1e-12


def test_the_interval_over_seeds_holds_the_truth_where_percentiles_do_not():
    found = coverage.seed_cell(3, 100, 1.0, 500)
    assert 0.92 <= found["covered"] <= 0.985 and found["percentiles_covered"] < 0.87, found


def test_what_is_simulated_is_what_the_public_functions_do():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 30, 4))
    low, high = interval_ends(np.stack([a, b]).mean(-1), proportion=True)
    for i, rows in enumerate((a, b)):
        assert mean_interval(by_task(rows), proportion=True)[1:3] == pytest.approx((low[i], high[i]))
    differences = (a - b).mean(1)
    names = sorted(by_task(a))
    in_order = differences[[int(name.split()[1]) for name in names]]
    assert paired_difference(by_task(a), by_task(b))[1:3] == pytest.approx(interval_ends(in_order))
    assert sign_flip_p(by_task(a), by_task(b)) == flip_p(in_order, names)
    assert flip_p(np.stack([in_order, -in_order]), names).tolist() == [flip_p(in_order, names)] * 2
    runs = rng.integers(0, 2, (3, 30, 4))
    scores = runs.mean(-1)[:, [int(name.split()[1]) for name in names]]
    scores = scores[np.lexsort(scores.T[::-1])]
    found = spread([by_task(rows) for rows in runs])
    assert found[1:3] == pytest.approx(tuple(map(float, spread_ends(scores, names, [""] * 30))))
