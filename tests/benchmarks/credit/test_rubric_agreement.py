"""A survey of rubrics that cannot tell a good one from its opposite."""

import asyncio
import tomllib

import pytest

from benchmarks.credit import rubric_agreement
from manyturn.cli.pages.option_pages import of_section
from manyturn.trainers.play.judges.rule import RULES


@pytest.fixture(autouse=True)
def flipped_rule(monkeypatch):
    names = RULES.names()
    monkeypatch.setattr(RULES, "_entries", {name: RULES.entry(name) for name in names})
    RULES.register(rubric_agreement.FlippedRuleConfig)(rubric_agreement.flipped)


def test_a_rule_that_holds_another_rule_is_listed_among_the_options_once():
    [group] = [group for group in of_section("judge.criteria.rule") if "flipped" in group.title]
    assert [row.name.rpartition(".")[2] for row in group.rows] == ["of"]


def test_the_survey_tells_a_good_rubric_from_the_same_with_its_criteria_flipped():
    plan = tomllib.loads(rubric_agreement.HERE.read_text()) | {"tasks": 8, "draws": 20}
    rows = asyncio.run(rubric_agreement.survey(plan["worlds"]["household-tiny"], plan))["all"]
    good, flipped, coin = (rows[name]["agreement"][0] for name in ("good", "flipped", "coin"))
    assert good > 0.8 > coin > 0.2 > flipped
    assert rows["good"]["trusted"] and not rows["flipped"]["trusted"]
    low, high = rows["flipped"]["good_less_this"][1:]
    assert 0 < low <= good - flipped <= high
