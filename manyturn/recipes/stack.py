"""Recipes laid on top of each other, and recipes of methods combined.

``stacked`` lays later values on earlier ones, section by section, as options on the command line do, with three
differences:

- Reward stages, modulations, reward wrappers, columns and loggers are lists of named entries: an entry of a name that
  is there changes that entry in place, another one is appended. A list on the command line replaces the list.
- Another objective keeps the regularisers (kl, entropy, epo, correction, reject) of the one that it replaces. EPO and
  the entropy bonus, which exclude each other, replace each other.
- What names no advantage, objective or curriculum changes the default one.

``combined`` does so with named recipes, and nothing that one of them is gets lost. A recipe of a method is a set of
units: an advantage, reward stages, modulations, a policy loss, regularisers, a curriculum, heads, branching and so on,
each with its options. In the combination every unit of every method is in effect, in whichever order they are named:

- A complete run lies below all methods, which replace what it has.
- The plain loss, ``clip`` or ``reinforce``, and its options at their defaults give way to a loss of another name, or to
  other options. EPO has an entropy bonus of its own: the bonus of another method gives way to it.
- Two methods that set one unit differently are refused, and so is a method that a file below it would disappear under.

Reward stages stand in one order, whichever was named first: what pays comes before what shares it out.

Settings are no units: learning rate schedules, minibatches, tasks and groups of a step. Of those the last one named
counts, and ``replaced_settings`` says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.contract.options.registry import Registry
from manyturn.trainers.credit.stages import MODULATIONS, REWARDS
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.recipe.config import names_envs, parts_as_tables, without_replaced_envs

Recipe = Mapping[str, Any]
Units = dict[tuple[str, ...], Any]

_LISTS = (("credit", "rewards"), ("credit", "modulation"), ("env", "wrappers"))
_NAMED = frozenset({"rewards", "modulation", "wrappers", "columns", "loggers"})
_REGULARISERS = ("kl", "entropy", "epo", "correction", "reject")
_EXCLUDES = {"epo": "entropy", "entropy": "epo"}
_PLAIN = ("clip", "reinforce")
_OFF = "off"
_UNITS = ("credit", "objective", "curriculum", "value", "progress", "implicit", "columns", "judge", "rollout")
_SETTINGS = {("rollout", "tasks"), ("rollout", "group"), ("rollout", "max_turns")}
_KEPT_SETTINGS = {("learner", "old_logprobs")}  # a correction works with one of them only


class NamedRecipe(NamedTuple):
    """A recipe as it was named.

    Attributes:
        name: of a recipe that comes with manyturn, or a file's path.
        values: as in TOML.
        is_method: whether it comes with manyturn and is no complete run.
        is_file: whether it is the user's.
    """

    name: str
    values: Recipe
    is_method: bool
    is_file: bool = False


def combined(recipes: Sequence[NamedRecipe], env: str | None = None) -> dict[str, Any]:
    """The values of all recipes together, with every unit of every method in effect.

    >>> gspo = NamedRecipe("gspo", {"objective": {"name": "gspo"}}, is_method=True)
    >>> dapo = NamedRecipe("dapo", {"objective": {"name": "clip", "high": 0.28}}, is_method=True)
    >>> combined([dapo, gspo])
    Traceback (most recent call last):
    ...
    manyturn.envs.contract.options.options.ConfigError: recipe dapo sets objective.high, which objective gspo ...

    Args:
        env: as for ``stacked``.

    Raises:
        ConfigError: two of them set one unit differently.
    """
    ordered = sorted(recipes, key=lambda recipe: recipe.is_method or recipe.is_file)
    methods = [recipe for recipe in ordered if recipe.is_method]
    _refuse_conflicts(methods)
    values = stacked([_yielding(recipe, methods) if recipe.is_method else recipe.values for recipe in ordered], env)
    if methods:
        _order_stages(values)
    for place, recipe in enumerate(ordered):
        later = [other for other in ordered[place + 1 :] if other.is_method]
        if recipe.is_file and not names_envs(recipe.values) and later:
            _refuse_lost(recipe, ordered[place + 1 :], values)
    return values


def units(recipe: Recipe) -> Units:
    """The entries of a method's units, by place; those of a list by the name of its entry.

    >>> units({"credit": {"rewards": [{"name": "spa", "beta": 0.5}]}, "rollout": {"group": 1}})
    {('credit', 'rewards', 'spa'): None, ('credit', 'rewards', 'spa', 'beta'): 0.5}
    """
    tables = parts_as_tables(recipe)
    entries = dict(_entries({name: tables[name] for name in _UNITS if name in tables}, ()))
    entries |= {place: value for place, value in _entries(tables, ()) if place in _KEPT_SETTINGS}
    entries = {place: value for place, value in entries.items() if place not in _SETTINGS}
    objective = _table(tables, "objective")
    return {place: value for place, value in entries.items() if not _is_plain(place, value, objective)}


def _entries(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _entries(inner, (*place, name))
        if not value:
            yield place, {}
    elif place and place[-1] in _NAMED and isinstance(value, list):
        for entry in map(_entry, value):
            name = str(_name(entry))
            yield (*place, name), None
            yield from _entries({key: inner for key, inner in entry.items() if key != "name"}, (*place, name))
    else:
        yield place, value


def _is_plain(place: tuple[str, ...], value: Any, objective: Mapping[str, Any]) -> bool:
    """True if an entry of the objective says no more than PPO's loss does by default."""
    if place[0] != "objective" or place[1] in _REGULARISERS or objective.get("name", "clip") not in _PLAIN:
        return False
    fields = OBJECTIVES.entry(objective.get("name", "clip")).config_type.model_fields
    return place[1] == "name" or (place[1] in fields and value == fields[place[1]].get_default())


def replaced_settings(recipes: Sequence[NamedRecipe]) -> list[str]:
    """A line for each setting of a method that a later method replaces.

    >>> epo, gigpo = (NamedRecipe(name, {"learner": {"lr_schedule": value}}, is_method=True)
    ...               for name, value in [("epo", "cosine"), ("gigpo", "constant")])
    >>> replaced_settings([epo, gigpo])
    ["learner.lr_schedule is 'constant', as in recipe gigpo, and not 'cosine', as in recipe epo"]
    """
    lines, last = list[str](), dict[tuple[str, ...], tuple[str, Any]]()
    for recipe in recipes:
        tables = parts_as_tables(recipe.values)
        for place, value in _entries(tables, ()) if recipe.is_method else ():
            if place[0] != "learner" and place not in _SETTINGS:
                continue
            name, before = last.get(place, (recipe.name, value))
            option = ".".join(place)
            if before != value:
                now = f"{option} is {value!r}, as in recipe {recipe.name}"
                lines.append(f"{now}, and not {before!r}, as in recipe {name}")
            last[place] = recipe.name, value
    return lines


def _order_stages(values: dict[str, Any]) -> None:
    for option, registry in (("rewards", REWARDS), ("modulation", MODULATIONS)):
        stages = _table(values, "credit").get(option)
        if not isinstance(stages, list):
            continue
        entries = [_entry(stage) for stage in stages]
        ranks = [_rank(registry, entry) for entry in entries]
        if None not in ranks:
            ordered = [entry for _, entry in sorted(zip(ranks, entries, strict=True), key=itemgetter(0))]
            values["credit"] = {**values["credit"], option: ordered}


def _rank(registry: Registry[Any], entry: Mapping[str, Any]) -> int | None:
    """Place of a stage, None if it has none; a gate on what later stages add comes last."""
    kinds: list[Any] = [registry.entry(name).config_type for name in registry.names()]
    orders = {kind.model_fields["name"].default: kind.order for kind in kinds if kind.order is not None}
    order = orders.get(entry["name"])
    gated = {gate.get("part") for gate in entry.get("gates", ()) if isinstance(gate, Mapping)}
    if order is None or not gated:
        return order
    added = {part for kind in kinds if kind.order is not None and kind.order > order for part in kind.adds}
    return max(orders.values()) + 1 if gated & added else order


def _refuse_conflicts(methods: Sequence[NamedRecipe]) -> None:
    by_recipe = [(recipe, units(recipe.values)) for recipe in methods]
    for number, (recipe, own) in enumerate(by_recipe):
        for other, theirs in by_recipe[:number]:
            clash = next((place for place in own if place in theirs and own[place] != theirs[place]), None)
            if clash is not None:
                raise ConfigError(
                    f"recipe {other.name} and recipe {recipe.name} set {'.'.join(clash)} differently, and one of them "
                    "would have no effect: leave one out, or put the options that you mean into a file of your own "
                    "and name it last"
                )
            for first, second, places in ((recipe, other, own), (other, recipe, theirs)):
                _refuse_homeless(first, places, second)


def _refuse_homeless(recipe: NamedRecipe, places: Units, other: NamedRecipe) -> None:
    """Refuse an option of the plain loss that the other recipe's loss does not have."""
    loss = _table(other.values, "objective").get("name", "clip")
    if loss in _PLAIN or _table(recipe.values, "objective").get("name", "clip") not in _PLAIN:
        return
    fields, theirs = OBJECTIVES.entry(loss).config_type.model_fields, units(other.values)
    for place, value in places.items():
        if place[0] != "objective" or place[1] in _REGULARISERS or (place[1] not in fields and value == _OFF):
            continue
        if place[1] not in fields or place not in theirs:
            raise ConfigError(
                f"recipe {recipe.name} sets {'.'.join(place)}, which objective {loss} of recipe {other.name} replaces: "
                "leave one of the recipes out, or put the objective that you mean into a file of your own and name it "
                "last"
            )


def _yielding(recipe: NamedRecipe, methods: Sequence[NamedRecipe]) -> dict[str, Any]:
    """A method's values without the entries that give way to units of the others."""
    values = parts_as_tables(recipe.values)
    objective = _table(values, "objective")
    own, others = units(values), [units(other.values) for other in methods if other.name != recipe.name]
    stated = {place[1] for theirs in others for place in theirs if place[0] == "objective"}
    gone = {name for name in objective if name in stated and ("objective", name) not in own}
    if ("objective", "name") not in own and "name" in stated:
        gone |= objective.keys() - set(_REGULARISERS)
    gone = {name for name in gone if name not in _REGULARISERS}
    if "epo" in stated and "epo" not in objective:
        gone.add("entropy")
    if gone:
        values["objective"] = {name: value for name, value in objective.items() if name not in gone}
        if not values["objective"]:
            del values["objective"]
    return values


def _refuse_lost(recipe: NamedRecipe, above: Sequence[NamedRecipe], values: Recipe) -> None:
    """Refuse a file whose units a method above it replaces; what files above it say is the user's own."""
    final = dict(_entries(parts_as_tables(values), ()))
    files = [parts_as_tables(other.values) for other in above if other.is_file]
    overruled = {place for values in files for place in dict(_entries(values, ()))}
    for place, value in units(recipe.values).items():
        if place not in overruled and (place not in final or final[place] != value):
            raise ConfigError(
                f"{'.'.join(place)} of {recipe.name} has no effect under the recipes after it: name {recipe.name} last"
            )


def stacked(recipes: Sequence[Recipe], env: str | None = None) -> dict[str, Any]:
    """The values of all recipes together.

    >>> rewards = [["invalid_penalty"], [{"name": "spa", "beta": 0.1}]]
    >>> stacked([{"credit": {"rewards": stages}} for stages in rewards])["credit"]["rewards"]
    [{'name': 'invalid_penalty'}, {'name': 'spa', 'beta': 0.1}]

    Args:
        recipes: values as in TOML, the lowest first.
        env: an environment that takes the place of those that recipes name, and of their arguments for it.
    """
    values: dict[str, Any] = {}
    for recipe in recipes:
        named = parts_as_tables(recipe)
        if env is not None and ("id" in _table(recipe, "env") or recipe.get("envs")):
            changed = {"env": {"id": env}}
            named = overlay(without_replaced_envs(named, changed), changed)
        values = _laid(values, named)
    return values


def named_env(*layers: Recipe) -> str | None:
    """The id of the first of these configurations that names an environment.

    >>> named_env({"steps": 3}, {"env": {"id": "manyturn/Maze-v0"}})
    'manyturn/Maze-v0'
    """
    return next((env["id"] for env in (_table(layer, "env") for layer in layers) if "id" in env), None)


def _laid(below: Recipe, recipe: Recipe) -> dict[str, Any]:
    merged = overlay(without_replaced_envs(below, recipe), dict(recipe))
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
    """The name of an entry; one that is no table, which the configuration will refuse, has none."""
    return entry.get("name") if isinstance(entry, Mapping) else object()


def _table(values: Recipe, name: str) -> dict[str, Any]:
    """A section; nothing where it is left out or no table."""
    table = values.get(name)
    return dict(table) if isinstance(table, Mapping) else {}
