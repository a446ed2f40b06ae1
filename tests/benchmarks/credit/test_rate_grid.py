"""A comparison that credits a method with something else: settings, seeds, a lucky rate, or figures of no file."""

import json
import subprocess
import tomllib
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.credit import rate_grid
from benchmarks.credit.rate_grid import BASE, PLAN, Cell, config_of, cross_chosen, rows_of, warmup_of
from manyturn.envs.contract.options.config_diff import changes

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "comparison.md"
OWN = {"grpo": set(), "gra": {"credit.rewards"}, "epo": {"objective.epo"}, "forks": {"credit.advantage", "rollout"}}
OWN |= {"spa": {"credit", "progress", "value"}}


@pytest.mark.parametrize(("row", "world"), {row: world for world in PLAN["worlds"] for row in rows_of(world)}.items())
def test_methods_differ_in_their_own_stage_and_have_one_budget_one_rate_and_one_warmup(row, world):
    config, base = (config_of(Cell(world, name, 2.0, 210)) for name in (row, "grpo"))
    own = OWN.get(row, {"credit.advantage", "value"})
    differing = changes(base.model_dump(mode="json"), config.model_dump(mode="json"))
    assert all(any(name.startswith(stage) for stage in own) for name in differing), differing
    assert bool(differing) == (row != "grpo"), "a method that changes nothing would be measured as one"
    assert config.rollout.tasks * config.rollout.group == 128
    warmup = warmup_of(world, 210)
    for part in ("env", "model", "agent", "sampling", "warmup", "evaluation", "seed"):
        assert getattr(config, part) == getattr(warmup, part), part
    assert config.learner.lr == 2 * warmup.learner.lr and BASE["evaluation"]["greedy"]


def test_a_seed_is_measured_at_the_rate_of_the_others_and_the_smaller_one_of_equals():
    """Seed 1 would choose the second rate for itself, at which only it does well."""
    seeds, factors = [0, 1, 2], PLAN["factors"]
    success = {(factor, seed): 0.5 for factor, seed in product(factors, seeds)} | {(factors[1], 1): 1.0}
    lines = [
        {"world": "w", "row": "r", "factor": factor, "seed": seed, "training": [value], "after": value}
        | {"after_greedy": factor}
        for (factor, seed), value in success.items()
    ]
    gains = cross_chosen(lines, "w", "r", seeds)
    assert gains.greedy.tolist() == [factors[1], factors[0], factors[1]]
    assert np.allclose(gains.after, 0.5)


def test_hypotheses_are_older_than_the_results():
    """The commit that the runs were made from has them."""
    result = json.loads(rate_grid.OUT.read_text(encoding="utf-8"))
    words = ["git", "show", f"{result['commit']}:benchmarks/credit/rate_grid.toml"]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if shown.returncode:
        pytest.skip("no history here: results name commits, which only a full clone has")
    assert tomllib.loads(shown.stdout) == result["plan"]
    assert result["plan"]["expected"] == PLAN["expected"]


def test_the_page_and_the_table_have_every_figure_of_every_cell():
    result = json.loads(rate_grid.OUT.read_text(encoding="utf-8"))
    assert len(result["lines"]) == len(list(rate_grid.cells()))
    text, tables = PAGE.read_text(encoding="utf-8"), rate_grid.page(result)
    assert [part for part in tables.split("\n\n") if part not in text] == []
    assert rate_grid.OUT.with_suffix(".md").read_text(encoding="utf-8") == tables + "\n"
