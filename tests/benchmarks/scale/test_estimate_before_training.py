"""The page on planning has other figures than the result, or a run whose options do not exist."""

import json

import pytest

from benchmarks.scale import estimate_before_training as estimates


def test_the_page_has_the_figures_of_the_result():
    text = estimates.PAGE.read_text()
    result = json.loads(estimates.OUT.read_text()) if estimates.OUT.exists() else None
    assert estimates.page(text, result) == text


def test_a_result_is_a_row_of_the_table():
    costs = {"seconds": 90.0, "cpu_seconds": 60.0, "trial_cpu_seconds": 7.0}
    row = {"run": "a", "estimate": costs, "taken": costs, "ratio": {"seconds": 0.9, "cpu_seconds": 1.1}}
    result = {"machine": "m", "load": 0.1, "commit": "c", "rows": [row]}
    assert "| a | 90 | 90 | 0.90 | 60 | 60 | 1.10 | 7 |" in estimates.section(result)


@pytest.mark.parametrize("name", estimates.RUNS)
def test_the_options_of_each_run_exist(name):
    assert estimates.config_of(name).steps >= 2
