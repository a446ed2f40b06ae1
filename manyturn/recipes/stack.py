"""Recipes laid on top of each other, later ones on earlier ones.

A later recipe replaces single entries, section by section, as options on the command line do, with three differences,
so that recipes which say different things add up in any order:

- Reward stages, modulations, reward wrappers, columns and loggers are lists of named entries: an entry of a name that
  is there changes that entry in place, another one is appended. A list on the command line replaces the list.
- Another objective keeps the regularisers (kl, entropy, epo, correction, reject) of the one that it replaces. EPO and
  the entropy bonus, which exclude each other, replace each other.
- What names no advantage, objective or curriculum changes the default one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.envs.contract.layers import overlay
from manyturn.trainers.recipe.config import parts_as_tables

Recipe = Mapping[str, Any]

_LISTS = (("credit", "rewards"), ("credit", "modulation"), ("env", "wrappers"))
_REGULARISERS = ("kl", "entropy", "epo", "correction", "reject")
_EXCLUDES = {"epo": "entropy", "entropy": "epo"}


def stacked(recipes: Sequence[Recipe], env: str | None = None) -> dict[str, Any]:
    """The values of all recipes together.

    >>> rewards = [["invalid_penalty"], [{"name": "spa", "beta": 0.1}]]
    >>> stacked([{"credit": {"rewards": stages}} for stages in rewards])["credit"]["rewards"]
    [{'name': 'invalid_penalty'}, {'name': 'spa', 'beta': 0.1}]

    Args:
        recipes: values as in TOML, the lowest first.
        env: an environment that takes the place of those that recipes name, and of their arguments for it.
    """
    whole: dict[str, Any] = {}
    for recipe in recipes:
        named = parts_as_tables(recipe)
        if env is not None and "id" in _table(recipe, "env"):
            named = overlay(named, {"env": {"id": env}})
        whole = _laid(whole, named)
    return whole


def named_env(*layers: Recipe) -> str | None:
    """The id of the first of these configurations that names an environment.

    >>> named_env({"steps": 3}, {"env": {"id": "manyturn/Maze-v0"}})
    'manyturn/Maze-v0'
    """
    return next((env["id"] for env in (_table(layer, "env") for layer in layers) if "id" in env), None)


def _laid(below: Recipe, recipe: Recipe) -> dict[str, Any]:
    merged = overlay(dict(below), dict(recipe))
    for section, name in _LISTS:
        old, new = _table(below, section), _table(recipe, section)
        if "id" in old and new.get("id", old["id"]) != old["id"]:
            continue  # another environment does not inherit the wrappers
        if isinstance(old.get(name), list) and isinstance(new.get(name), list):
            merged[section] = {**merged[section], name: _joined(old[name], new[name])}
    for name in ("columns", "loggers"):
        if isinstance(below.get(name), list) and isinstance(recipe.get(name), list):
            merged[name] = _joined(below[name], recipe[name])
    old, new = _table(below, "objective"), _table(recipe, "objective")
    if old and new:
        gone = {other for name, other in _EXCLUDES.items() if name in new and other not in new}
        stays = {name: old[name] for name in _REGULARISERS if name in old}
        objective = overlay(stays, merged["objective"])
        merged["objective"] = {name: value for name, value in objective.items() if name not in gone}
    return merged


def _joined(old: list[Any], new: list[Any]) -> list[Any]:
    """The entries of both lists, those of one name laid on each other in the place of the old one."""
    joined = [_entry(value) for value in old]
    for entry in map(_entry, new):
        places = [place for place in range(len(old)) if _name(joined[place]) == _name(entry)]
        if places:
            joined[places[0]] = overlay(joined[places[0]], entry)
        else:
            joined.append(entry)
    return joined


def _entry(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _name(entry: Any) -> Any:
    """What an entry is known by; one that is no table, which the configuration will refuse, only by itself."""
    return entry.get("name") if isinstance(entry, Mapping) else object()


def _table(values: Recipe, name: str) -> dict[str, Any]:
    """A section; nothing where it is left out or no table."""
    found = values.get(name)
    return dict(found) if isinstance(found, Mapping) else {}
