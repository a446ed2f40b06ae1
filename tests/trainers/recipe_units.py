"""The stages of each recipe, one by one, and the recipe without one of them, in the small world of two steps."""

from collections.abc import Mapping
from typing import Any

from option_worlds import COARSE
from training_options import laid
from two_steps import CALLING, CALLS, STATES, STATING, TAGGED, TAGS, WORLD

from manyturn.envs.contract.options.registry import Registry
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.credit.stages import ADVANTAGES
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.recipe.config import parts_as_tables

REGULARISERS = ("kl", "entropy", "epo", "correction", "reject")
ROLLOUT = ("horizon", "branching", "rounds", "spread_share", "guidance", "replay")
PAIRED = {"objective.aggregation", "objective.reference"}  # which credit of pairs would be refused without
RARELY = {
    "low",
    "high",
    "dual",
    "singleton",
}  # what two steps hardly come to; the test of options has worlds where they do
TOGETHER = {"aggregation": ("scale", "sequence", "ratio")}  # which the default aggregation refuses
USED_BY = {
    "credit.advantage": ("value", "columns", "implicit"),
    "spa": ("progress",),
    "renorm": ("judge",),
    "attribution": ("judge",),
    "calibration": ("columns",),
}  # which would be refused without them
SPREAD = {"env.args": {"copies": 1}, "rollout.tasks": 8}
WORLDS: dict[str, Mapping[str, Any]] = {
    "gigpo-similarity": {"env.args": {"counted": True}},
    "tis": COARSE,
    "icepop": COARSE,
    "scaling-inter": {"rollout.horizon": {"first": 1, "by": 2, "every": 1, "last": 4}},
    "arpo": {"rollout.branching": {"initial": 2}},
    "verlog": {"value": {"pretraining": {"episodes": 16, "passes": 1}}, "objective": {"kl": {"coef": 0.1}}},
    "aepo-arbitrary": {"rollout.tempering": {"target": 9.0}},
    "scaf-grpo": {"rollout.guidance": {"members": 2, "tiers": [0.5, 1.0]}},
    "critique-grpo": {"rollout.guidance": {"members": 2}},
    "arpo-replay": {"env.args": {"limit": 2, "copies": 1}, "rollout.tasks": 12},
    "relift": {"env.args": {"limit": 2, "copies": 1}, "rollout.tasks": 12},
    "bpo": {"rollout.branching": {"initial": 2}},
    "pav": {"rollout.branching": {"initial": 2}},
    "agent-q-tree": {"rollout.branching": {"initial": 2}},
    "dapo": {"credit.rewards=overlong": {"buffer_share": 1.0}, "rollout.group": 2, "rollout.tasks": 8},
    "spo": {**SPREAD, "credit.advantage=spo": {"low": -3.0, "high": 3.0}},
    "reinforce-pp-baseline": {"objective.kl": {"coef": 0.1}},  # theirs is too small for two steps to show it
    "difficulty-filter": SPREAD,
    "mopps": SPREAD,
    "pcl": SPREAD,
    "istar": {"implicit": {"beta": 0.5, "lr": 0.05}},
    "c-grpo": {"credit.rewards=rubric": {"part": "step"}},
    "rlcr": {"model.path": STATING, **STATES, "columns=confidence": {"tag": "action"}},
    "riskpo": {"credit.advantage=riskpo": {"bundle": 2}},
    **{
        name: {"progress": {"trust": "full", "exploration": {"episodes": 16, "passes": 2}}}
        for name in ("spa", "gigpo-spa-epo-gra")
    },
    "spa-alongside": {"progress": {"trust": "full"}},
    "stratified-search": {"model.path": CALLING, **CALLS, "columns=tool_calls": {"tools": ["red"]}},
}


def units(name: str) -> list[str]:
    """The stages and the sections of a recipe that can be taken away by themselves."""
    recipe = parts_as_tables(load_recipe(name))
    credit, objective = recipe.get("credit", {}), recipe.get("objective", {})
    found = [f"credit.{kind}={_name(one)}" for kind in ("rewards", "modulation") for one in credit.get(kind, ())]
    found += ["credit.advantage"] if "advantage" in credit else []
    found += _options("credit.advantage", credit.get("advantage", {}), ADVANTAGES)
    found += _options("objective", {"name": "clip"} | objective, OBJECTIVES)
    # On policy the gradient of reinforce is that of the clipped loss.
    found += ["objective"] if objective.get("name", "clip") not in ("clip", "reinforce") else []
    found += [f"objective.{part}" for part in REGULARISERS if part in objective]
    found += [f"rollout.{part}" for part in ROLLOUT if part in recipe.get("rollout", {})]
    if "reference" in objective:
        found = [unit for unit in found if unit not in PAIRED]
    return found + (["curriculum"] if "curriculum" in recipe else [])


def _options(place: str, stage: dict[str, Any], registry: Registry[Any]) -> list[str]:
    """Options of a stage that differ from their defaults, and can be left out."""
    if not stage:
        return []
    fields = registry.entry(stage["name"]).config_type.model_fields
    others = {key for key in stage.keys() - {"name", *REGULARISERS} if stage[key] != fields[key].get_default()}
    bound = {key for first, later in TOGETHER.items() if first in others for key in later}
    return [f"{place}.{key}" for key in sorted(others - bound - RARELY) if not fields[key].is_required()]


def small(name: str) -> dict[str, Any]:
    """A recipe in the small world."""
    recipe = load_recipe(name)
    for section in ("env", "agent", "model", "warmup", "sampling", "evaluation", "roles", "threads", "device"):
        recipe.pop(section, None)
    recipe = stacked([WORLD, {"credit": {"advantage": "gigpo"}}, recipe])
    recipe["rollout"] |= {"tasks": 4, "group": 4}
    recipe["learner"] = {key: value for key, value in recipe["learner"].items() if key != "lr_warmup"}
    recipe["learner"] |= {"lr": 1e-2, "minibatch": 16 if recipe["objective"]["name"] == "reinforce" else 8}
    if any(_name(stage) == "invalid_penalty" for stage in recipe["credit"].get("rewards", ())):
        recipe = laid(recipe, {"model.path": TAGGED, **TAGS})
    return laid(recipe | {"steps": WORLD["steps"], "checkpoint_every": 1000}, WORLDS.get(name, {}))


def without(recipe: dict[str, Any], unit: str) -> dict[str, Any]:
    """The recipe less a unit, and less what would have no effect then."""
    *sections, last = unit.split(".")
    key, _, stage = last.partition("=")
    recipe = {name: value for name, value in recipe.items() if name not in USED_BY.get(stage or unit, ())}
    if unit == "credit.advantage":
        if getattr(ADVANTAGES.entry(_name(recipe["credit"]["advantage"])).config_type, "reads_verdicts", False):
            recipe.pop("judge")
        objective = {key: value for key, value in recipe["objective"].items() if key != "reference"}
        return recipe | {"objective": objective} | _with_another_advantage(recipe)
    if unit == "objective":
        kept = {part: value for part, value in recipe["objective"].items() if part in REGULARISERS}
        return recipe | {"objective": {"name": "clip", **kept}}
    if not sections:
        return {name: value for name, value in recipe.items() if name != unit}
    section, *inner = sections
    table, gone = dict(recipe[section]), (key, *TOGETHER.get(key, ()))
    if inner:
        table[inner[0]] = {name: value for name, value in table[inner[0]].items() if name not in gone}
    elif stage:
        table[key] = [
            one for one in table[key] if _name(one) != stage and not (stage == "spa" and _name(one) == "gated")
        ]
    else:
        table = {name: value for name, value in table.items() if name not in gone}
    return recipe | {section: table}


def _with_another_advantage(recipe: dict[str, Any]) -> dict[str, Any]:
    """Credit by a simpler method, of turns or of tokens where something asks for those."""
    name, credit = recipe["credit"]["advantage"]["name"], recipe["credit"]
    if any(_name(stage) == "spa" for stage in credit.get("rewards", ())):
        return {"credit": {**credit, "advantage": "mt_grpo"}}
    if name in ("reinforce_pp", "dual_gae"):
        return {"credit": {**credit, "advantage": "gae"}, "value": {}}
    return {"credit": {**credit, "advantage": "rloo" if name == "grpo" else "grpo"}}


def _name(entry: Any) -> str:
    return entry if isinstance(entry, str) else entry["name"]
