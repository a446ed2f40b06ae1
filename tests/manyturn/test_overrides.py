"""Options on the command line mean the same as entries of a recipe."""

import tomllib

import pytest

from manyturn.agents.text.contexts.window import WindowConfig
from manyturn.terminal.overrides import OverrideError, parse_overrides
from manyturn.trainers.recipe.config import configure, to_toml

pytestmark = pytest.mark.versions


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


def test_what_a_recipe_says_can_be_taken_back():
    recipe = {
        "env": {"id": "manyturn/Household-v0", "args": {"difficulty": "hard", "max_turns": 50}},
        "rollout": {"horizon": {"first": 1, "by": 1, "every": 1, "last": 9}},
    }
    words = ["--env.args.difficulty", "unset", "--env.args.games", "DIR", "--rollout.horizon", "unset"]
    config = configure(recipe, {}, parse_overrides(words))
    assert config.env.args == {"max_turns": 50, "games": "DIR"} and config.rollout.horizon is None
    assert configure(tomllib.loads(to_toml(config)), {}, {}) == config, "a resumed run is another one"
