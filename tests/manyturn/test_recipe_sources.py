"""The page that says where settings come from must not say other values than the recipes have."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from manyturn.recipes import load_recipe, methods
from manyturn.trainers.recipe.config import configure

ROOT = Path(__file__).parents[2]
AUTHORS = "household-gigpo-qwen2.5-1.5b"  # a complete run that claims the authors' settings
OWN = {"gigpo-spa-epo-gra", "situation-gae"}  # which nobody has published
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", (ROOT / "docs/recipes.md").read_text(), re.M | re.S))
NAMES = sorted({*methods(), AUTHORS} - OWN)


def rows(name):
    """Setting -> what stands here, what theirs is, where, and why ours differs."""
    lines = re.findall(r"^\| `(\S+)` \|(.*)\|$", SECTIONS[name], re.M)
    found = {setting: [cell.strip() for cell in cells.split("|")] for setting, cells in lines}
    assert len(found) == len(lines), "a setting stands there twice"
    return found


def settings(table, at=""):
    """(place, value) of each entry of a recipe; a part by its name, and one of a list with its name in the place."""
    for key, value in table.items():
        place = f"{at}.{key}" if at else key
        if isinstance(value, dict):
            yield from settings(value, place)
        elif isinstance(value, list) and value and all(isinstance(one, dict) and "name" in one for one in value):
            for one in value:
                rest = {option: given for option, given in one.items() if option != "name"}
                yield from settings(rest, f"{place}.{one['name']}") if rest else [(place, one["name"])]
        else:
            yield (at if key == "name" and at else place), value


def shown(value):
    return value if isinstance(value, str) else json.dumps(value)


def default(name, place):
    """The value of a setting that the TOML leaves out."""
    found = configure(load_recipe(name), {"env": {"id": "manyturn/Maze-v0"}} if name != AUTHORS else {}).model_dump(
        mode="json"
    )
    for part in place.split("."):
        found = next(one for one in found if one["name"] == part) if isinstance(found, list) else found[part]
        if found is None:
            return "off"
    return shown(found["name"] if isinstance(found, dict) else found)


def test_every_method_has_its_section_and_no_other_is_there():
    assert SECTIONS.keys() == {*methods(), AUTHORS}
    assert all(not rows(name) for name in OWN)


@pytest.mark.parametrize("name", NAMES)
def test_no_recipes_page_contradicts_its_toml(name):
    toml = dict(settings(tomllib.loads((ROOT / f"manyturn/recipes/{name}.toml").read_text())))
    told = rows(name)
    assert toml.keys() <= told.keys(), "the page leaves settings out"
    for setting, (here, *_) in told.items():
        assert here == (shown(toml[setting]) if setting in toml else default(name, setting)), setting


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_other_than_the_authors_has_its_reason_and_each_has_its_place(name):
    for setting, (here, theirs, where, why) in rows(name).items():
        assert where, setting
        assert bool(why) == (here != theirs), f"{setting}: a reason stands where, and only where, ours differs"
        assert (where in ("not published", "not known to us")) == (not theirs), setting


def test_repositories_are_named_with_the_commit_that_was_read():
    head = (ROOT / "docs/recipes.md").read_text().partition("\n## ")[0]
    known = {name for name, commit in re.findall(r"^\| (\S+) \|.*\| ([0-9a-f]{7}) \|$", head, re.M)}
    for name in NAMES:
        for setting, (_, _, where, _) in rows(name).items():
            if file := re.match(r"(\S+) \S+\.(?:py|sh|yaml|md)", where):
                assert file[1] in known, (name, setting, where)
