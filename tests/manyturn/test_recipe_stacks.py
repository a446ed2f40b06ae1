"""Two recipes of methods together train both methods, in either order, or the pair is refused."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from manyturn.api.training import configured
from manyturn.envs.contract.options.options import ConfigError
from manyturn.recipes import load_recipe, methods
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.recipe.config import parts_as_tables

ENV = "manyturn/Maze-v0"
TAGGED = {"agent": {"format": "tagged"}}
SETTINGS = {"rollout.tasks", "rollout.group"}
PLAIN = ("clip", "reinforce")
PAGE = Path(__file__).parents[2] / "docs/recipes.md"


def together(*names):
    """The configuration as plain values, or the reason why there is none."""
    try:
        return configured(names, TAGGED, ENV).model_dump(mode="json")
    except ConfigError as error:
        return str(error)


def stated(name):
    """Every entry that a recipe states, but for settings: what it is that it must still be in company."""
    flat = {}

    def walk(value, place):
        if place in ("credit.rewards", "credit.modulation", "columns"):
            for entry in value:
                entry = {"name": entry} if isinstance(entry, str) else entry
                walk(entry, f"{place}={entry['name']}")
        elif isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{place}.{key}" if place else key)
        else:
            flat[place] = value

    walk(parts_as_tables(load_recipe(name)), "")
    return {place: value for place, value in flat.items() if place not in SETTINGS and not place.startswith("learner.")}


def at(config, place):
    for part in place.split("."):
        key, _, entry = part.partition("=")
        config = (config or {}).get(key)
        if entry:
            config = next((one for one in config or () if one["name"] == entry), None)
    return config


def is_lost(place, value, recipe, config):
    """Whether an entry of a recipe is not in effect, and nothing else is in its place that the recipe gives way to."""
    now, loss = at(config, place), config["objective"]
    if now == value or (isinstance(value, float | int) and now == float(value)):
        return False
    if place.startswith("objective.entropy"):
        return loss["epo"] is None  # EPO has a bonus of its own
    own = recipe.get("objective", {}).get("name", "clip")
    if place.startswith("objective.") and place.count(".") == 1 and own in PLAIN:
        default = OBJECTIVES.entry(own).config_type.model_fields
        option = place.removeprefix("objective.")
        gives_way = option == "name" or default[option].get_default() == value
        return not (gives_way or (value == "off" and option not in loss))
    return True


@pytest.fixture(scope="module")
def pairs():
    return {pair: together(*pair) for pair in itertools.permutations(methods(), 2)}


@pytest.mark.deep
def test_no_pair_of_methods_loses_anything_that_either_of_them_states(pairs):
    lost = [
        (*pair, place)
        for pair, config in pairs.items()
        if not isinstance(config, str)
        for name in pair
        for place, value in stated(name).items()
        if is_lost(place, value, load_recipe(name), config)
    ]
    assert not lost


def test_either_order_is_the_same_but_for_settings_and_the_page_has_the_counts(pairs):
    counts = Counter()
    for first, second in itertools.combinations(methods(), 2):
        one, other = pairs[first, second], pairs[second, first]
        if isinstance(one, str):
            assert isinstance(other, str), (first, second)
            counts["refused"] += 1
        elif one == other:
            counts["equal"] += 1
        else:
            assert {key for key in one if one[key] != other[key]} <= {"learner", "rollout"}, (first, second)
            counts["settings"] += 1
    told = re.search(r"Of (\d+) pairs .*?(\d+) .*?(\d+) .*?(\d+) ", PAGE.read_text(), re.S)
    assert [int(number) for number in told.groups()] == [
        counts.total(),
        counts["equal"],
        counts["settings"],
        counts["refused"],
    ]


def test_a_refused_pair_names_both_recipes_or_the_stages_that_exclude_each_other(pairs):
    for pair, reason in pairs.items():
        if isinstance(reason, str) and "recipe" in reason:
            assert (
                all(re.search(rf"recipe {re.escape(name)}\b", reason) for name in pair) and "file of your own" in reason
            )


def test_a_setting_that_gives_way_and_a_unit_that_cannot_act_are_told_before_the_run(capsys):
    configured(["epo", "gigpo"], {}, ENV)
    notes = capsys.readouterr().err
    assert "learner.lr_schedule" in notes and "invalid_penalty is left out" in notes
    assert not configured(["gigpo"], {}, ENV).credit.rewards
    assert configured(["gigpo"], {"credit": {"rewards": ["invalid_penalty"]}}, ENV).credit.rewards


def test_a_file_of_the_users_wins_on_top_and_is_refused_where_a_method_would_hide_it(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('[objective]\nname = "gspo"\nlow = 0.1\n')
    assert configured(["dapo", str(file)], {}, ENV).objective.low == 0.1
    with pytest.raises(ConfigError, match=r"name .*own\.toml last"):
        configured([str(file), "dapo"], {}, ENV)


def test_a_complete_run_lies_below_methods_wherever_it_is_named():
    assert configured(["ppo", "quickstart"], {}) == configured(["quickstart", "ppo"], {})
