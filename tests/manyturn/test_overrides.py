"""Options on the command line mean the same as entries of a recipe."""

import pytest

from manyturn.agents.contexts.window import WindowConfig
from manyturn.overrides import OverrideError, parse_overrides
from manyturn.trainers.recipe.config import configure


def test_values_are_read_as_toml_and_else_as_text():
    words = ["--learner.lr", "1e-4", "--credit.advantage.name=grpo", "--agent.instructions", "false", "--steps=3"]
    assert parse_overrides(words) == {
        "learner": {"lr": 1e-4},
        "credit": {"advantage": {"name": "grpo"}},
        "agent": {"instructions": False},
        "steps": 3,
    }


def test_dashes_may_stand_for_underscores():
    assert parse_overrides(["--warmup.until-success", "0.5"]) == {"warmup": {"until_success": 0.5}}


@pytest.mark.parametrize("first", [0, 1])
def test_the_name_of_a_part_and_its_options_stand_together_in_any_order(first):
    pairs = [["--agent.context", "window"], ["--agent.context.turns", "3"]]
    words = [*pairs[first], *pairs[1 - first]]
    assert parse_overrides(words) == {"agent": {"context": {"name": "window", "turns": 3}}}
    config = configure({}, {"env": {"id": "manyturn/Maze-v0"}}, parse_overrides(words))
    assert config.agent.context == WindowConfig(turns=3)


@pytest.mark.parametrize(
    "words",
    [
        ["steps", "3"],
        ["--steps"],
        ["--"],
        ["--a", "1", "--a.b", "2"],
        ["--a.b", "2", "--a", "1"],
        ["--a", "1", "--a", "1"],
        ["--agent.context", "window", "--agent.context.name", "whole"],
    ],
)
def test_words_that_are_no_option_are_refused(words):
    with pytest.raises(OverrideError):
        parse_overrides(words)
