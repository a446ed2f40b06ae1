"""The stages of each recipe, one by one, and the recipe without one of them, in the small world of two steps."""

from collections.abc import Mapping
from typing import Any

from option_table import ALL, COARSE
from training_options import laid
from two_steps import TAGGED, TAGS, WORLD

from manyturn.envs.contract.registry import Registry
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.credit.stages import ADVANTAGES
from manyturn.trainers.learn.objective import OBJECTIVES
from manyturn.trainers.recipe.config import parts_as_tables

REGULARISERS = ("kl", "entropy", "epo", "correction", "reject")
ROLLOUT = ("horizon", "branching", "rounds")
RARELY = {"dual", "singleton"}  # what two steps hardly come to; the test of options has worlds where they do
USED_BY = {"credit.advantage": "value", "spa": "progress"}  # which would be refused without them
SPREAD = {"env.args": {"copies": 1}, "rollout.tasks": 8}
WORLDS: dict[str, Mapping[str, Any]] = {
    "gigpo-similarity": {"env.args": {"counted": True}},
    "tis": COARSE,
    "icepop": COARSE,
    "scaling-inter": {"rollout.horizon": {"first": 1, "by": 2, "every": 1, "last": 4}},
    "arpo": {"rollout.branching": {"initial": 2}},
    "dapo": {"credit.rewards=overlong": {"max_tokens": 8, "buffer": 5}},
    "spo": {**ALL, "credit.advantage=spo": {"low": -3.0, "high": 3.0}, "rollout.group": 1},
    "difficulty-filter": SPREAD,
    "loop": {"learner.lr": 1e-2},
    **{name: {"progress": {"exploration": {"episodes": 16, "passes": 2}}} for name in ("spa", "gigpo-spa-epo-gra")},
    "spa-alongside": {"credit.advantage": "gigpo"},
}


def units(name: str) -> list[str]:
    """The stages and the sections of a recipe that can be taken away by themselves."""
    recipe = parts_as_tables(load_recipe(name))
    credit, objective = recipe.get("credit", {}), recipe.get("objective", {})
    found = [f"credit.{kind}={_name(one)}" for kind in ("rewards", "modulation") for one in credit.get(kind, ())]
    found += ["credit.advantage"] if "advantage" in credit else []
    found += _options("credit.advantage", credit.get("advantage", {}), ADVANTAGES)
    found += _options("objective", {"name": "clip"} | objective, OBJECTIVES)
    found += ["objective"] if objective.get("name", "clip") != "clip" else []
    found += [f"objective.{part}" for part in REGULARISERS if part in objective]
    found += [f"rollout.{part}" for part in ROLLOUT if part in recipe.get("rollout", {})]
    return found + (["curriculum"] if "curriculum" in recipe else [])


def _options(place: str, stage: dict[str, Any], registry: Registry[Any]) -> list[str]:
    """Options of a stage that differ from their defaults, and can be left out."""
    if not stage:
        return []
    fields = registry.entry(stage["name"]).config_type.model_fields
    others = {key for key in stage.keys() - {"name", *REGULARISERS} if stage[key] != fields[key].get_default()}
    return [f"{place}.{key}" for key in sorted(others) if not fields[key].is_required() and key not in RARELY]


def small(name: str) -> dict[str, Any]:
    """A recipe in the small world."""
    recipe = load_recipe(name)
    played = recipe.get("rollout", {})
    alone = played.get("group") == 1
    for section in ("env", "agent", "model", "warmup", "sampling", "evaluation", "roles", "threads", "device"):
        recipe.pop(section, None)
    recipe = stacked([WORLD, recipe])
    recipe["rollout"] |= {"tasks": 16 if alone else 4, "group": 1 if alone else 4}
    recipe["learner"] = {key: value for key, value in recipe["learner"].items() if key != "lr_warmup"}
    recipe["learner"] |= {"lr": 1e-2, "minibatch": 16 if recipe["objective"]["name"] == "reinforce" else 8}
    if any(_name(stage) == "invalid_penalty" for stage in recipe["credit"].get("rewards", ())):
        recipe = laid(recipe, {"model.path": TAGGED, **TAGS})
    return laid(recipe | {"steps": WORLD["steps"], "checkpoint_every": 1000}, WORLDS.get(name, {}))


def without(recipe: dict[str, Any], unit: str) -> dict[str, Any]:
    """The recipe less a unit, and less what would have no effect then."""
    *sections, last = unit.split(".")
    key, _, stage = last.partition("=")
    gone = USED_BY.get(stage or unit)
    recipe = {name: value for name, value in recipe.items() if name != gone}
    if unit == "credit.advantage":
        turns = any(_name(one) == "spa" for one in recipe["credit"].get("rewards", ()))
        usual = "mt_grpo" if turns else "rloo" if recipe["credit"]["advantage"]["name"] == "grpo" else "grpo"
        return recipe | {"credit": {**recipe["credit"], "advantage": usual}}
    if unit == "objective":
        kept = {part: value for part, value in recipe["objective"].items() if part in REGULARISERS}
        return recipe | {"objective": {"name": "clip", **kept}}
    if not sections:
        return {name: value for name, value in recipe.items() if name != unit}
    section, *inner = sections
    table = dict(recipe[section])
    if inner:
        table[inner[0]] = {name: value for name, value in table[inner[0]].items() if name != key}
    elif stage:
        table[key] = [
            one for one in table[key] if _name(one) != stage and not (stage == "spa" and _name(one) == "gated")
        ]
    else:
        del table[key]
    return recipe | {section: table}


def _name(entry: Any) -> str:
    return entry if isinstance(entry, str) else entry["name"]
