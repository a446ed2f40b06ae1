"""No method is inert: in a world where it must matter, two steps lead to other weights with it than without it.

Whatever is registered and every option of a run needs an entry in ``option_table.py``, which names the world.
"""

import re
from typing import Any

import pytest
from option_table import OPTIONS
from option_worlds import COARSE, Matters, Unchanged
from recipe_units import small, units, without
from training_options import UNSET, Option, laid, training_options
from two_steps import ROUNDING, WORLD, Trainings, apart

from manyturn.recipes import names

SLOW = pytest.mark.slow
FOUND = training_options()
# What is in the default tests; the others are in make test-all.
OFTEN = ("credit.advantage=*", "credit.rewards=*", "objective=*", "curriculum=*", "value", "progress")


def fits(name: str, pattern: str) -> bool:
    """Whether an entry of that pattern is about an option; a star stands for part of one word of its name."""
    return re.fullmatch("[^.]*".join(map(re.escape, pattern.split("*"))), name) is not None


def entry(name: str) -> Matters | Unchanged | None:
    return next((told for pattern, told in OPTIONS.items() if fits(name, pattern)), None)


def pair(option: Option) -> tuple[dict[str, Any], dict[str, Any]]:
    """The recipes of both runs."""
    recipe = WORLD
    for name in option.above:
        outer = entry(name)
        assert outer is not None
        recipe = laid(recipe, {**outer.world, **outer.needs, name: outer.other})
    told = entry(option.name)
    assert told is not None
    recipe = laid(recipe, told.world) | {"steps": told.steps}
    place = option.name.rpartition("=")[0] if option.is_choice else option.name
    return laid(recipe, {place: told.first}), laid(recipe, {option.name: told.other, **told.needs})


@pytest.fixture(scope="session")
def trainings(tmp_path_factory):
    return Trainings(tmp_path_factory.mktemp("two_steps"))


def test_everything_that_changes_training_has_an_entry_that_names_its_world():
    assert not [option.name for option in FOUND if entry(option.name) is None]
    assert not [pattern for pattern in OPTIONS if not any(fits(option.name, pattern) for option in FOUND)], "is gone"


def parameters(kind: type[Matters | Unchanged], often: tuple[str, ...]) -> list[Any]:
    """The options whose entries are of that kind and name a value."""
    found = [(option, told) for option in FOUND if isinstance(told := entry(option.name), kind)]
    return [
        pytest.param(option, id=option.name, marks=[] if any(fits(option.name, one) for one in often) else SLOW)
        for option, told in found
        if told.other is not UNSET
    ]


@pytest.mark.deep
@pytest.mark.parametrize("option", parameters(Matters, OFTEN))
def test_weights_differ(option, trainings):
    first, second = (trainings.run(recipe) for recipe in pair(option))
    assert apart(first, second) > ROUNDING


@pytest.mark.parametrize("option", parameters(Unchanged, ("learner.packing",)))
def test_what_rightly_changes_nothing_changes_nothing(option, trainings):
    first, second = (trainings.run(recipe) for recipe in pair(option))
    assert apart(first, second) < ROUNDING


@pytest.mark.parametrize(("name", "value"), [("correction", {}), ("reject", [{"upper": 1e-3}])])
def test_what_has_nothing_to_correct_in_a_run_of_one_model_says_so(name, value, trainings):
    first, second = (trainings.run(laid(WORLD, {"objective": table})) for table in ({}, {name: value}))
    assert apart(first, second) < ROUNDING
    [said] = [notice for notice in second.notices if f"objective.{name}" in notice]
    assert "changes nothing here" in said
    elsewhere = trainings.run(laid(WORLD, {"objective": {name: value}, **COARSE}))
    assert not [notice for notice in elsewhere.notices if "changes nothing here" in notice]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "unit"), [(name, unit) for name in names() for unit in units(name)])
def test_weights_differ_without_a_stage_of_the_recipe(name, unit, trainings):
    recipe = small(name)
    assert apart(trainings.run(recipe), trainings.run(without(recipe, unit))) > ROUNDING


def test_every_recipe_has_a_stage_that_is_its_own():
    assert not [name for name in names() if not units(name)]
