"""Figures of benchmarks with several policies."""

import pytest

from benchmarks.roles.self_play import held, lead
from benchmarks.roles.werewolf import wins


def test_what_a_self_earns_is_over_both_seats_and_paired_by_game():
    as_first = {"a": (0.7, 0.3), "b": (0.5, 0.5)}
    as_second = {"a": (0.4, 0.6), "b": (0.5, 0.5)}
    row = lead(as_first, as_second)
    assert (row["last"], row["past"]) == pytest.approx((1.15, 0.85))
    assert row["difference"]["mean"] == pytest.approx(0.3)
    assert row["difference"]["ci_low"] < 0 < row["difference"]["ci_high"]  # two games say little


def test_an_expectation_holds_where_every_early_self_of_every_seed_is_beaten():
    runs = [{"panel": [{"step": 0, "difference": {"ci_low": 0.1}}, {"step": 20, "difference": {"ci_low": -0.1}}]}]
    assert held(runs, 10) and not held(runs, 20)


def test_the_werewolf_wins_where_the_villagers_do_not():
    assert wins({"success": 0.75, "ci_low": 0.5, "ci_high": 0.9}) == {"wins": 0.25, "ci_low": 0.1, "ci_high": 0.5}
