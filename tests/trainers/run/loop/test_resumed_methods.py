"""What a method keeps, or reads in an episode, is lost when a run is killed between playing a step and saving it.

Methods with a test of their own for this are not here: loop, spo, schedules of rates, branches, estimators, critics.
"""

from pathlib import Path
from typing import Any

import pytest
from played_guesses import short_guesses
from short_runs import resumed_to_the_bit, short_run

from manyturn.recipes import load_recipe

HERE = Path(__file__).parents[2]
UNDERSTOOD = [{"name": "invalid_penalty", "flag": "understood"}]
METHODS: dict[str, dict[str, Any]] = {
    "epo": {"objective": {"name": "clip", "epo": {}}},
    "similarity": {
        "env": {"id": f"{HERE.joinpath('lamps.py')}:Lamps", "args": {"counted": True}},
        "credit": {"advantage": {"name": "gigpo", "similarity": 0.9}},
    },
    "igpo": {"credit": load_recipe("igpo")["credit"]},
    "both flags": {"credit": {"rewards": UNDERSTOOD, "advantage": "gigpo"}},
    "division by eps": {
        "credit": {"rewards": UNDERSTOOD, "advantage": {"name": "gigpo", "mode": "mean_std_norm", "flat_std": "zero"}}
    },
    "truncated left out": {"credit": {"advantage": "gigpo", "truncated": "left_out"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_corrected_method_goes_on_to_the_bit_after_a_kill(tmp_path, name):
    resumed_to_the_bit(short_guesses(**METHODS[name]), tmp_path)


@pytest.mark.slow
def test_strata_of_tool_calls_go_on_to_the_bit_after_a_kill(tmp_path):
    recipe = load_recipe("stratified-search")
    config = short_run(
        env={"id": f"{HERE.joinpath('searches.py')}:Searches"},
        sampling={"max_tokens": 24},
        rollout={"tasks": 2, "group": 4, "cut_share": 1.0},
        credit=recipe["credit"],
        columns=recipe["columns"],
        steps=4,
        evaluation={"limit": 1},
    )
    resumed_to_the_bit(config, tmp_path)
