"""A recipe's name where an option was meant: ``--algorithm ppo``, or an advantage that only a recipe is called."""

from collections.abc import Mapping
from typing import Any

from manyturn.envs.contract.options.option_paths import option_paths
from manyturn.envs.contract.options.options import ConfigError
from manyturn.recipes import names
from manyturn.trainers.recipe.config import CHOICES, RunConfig


def refuse_recipe_names(changes: Mapping[str, Any]) -> None:
    """Raise ConfigError, which says how a recipe is named, if a change gives its name in another place.

    >>> refuse_recipe_names({"algorithm": "ppo"})
    Traceback (most recent call last):
    ...
    manyturn.envs.contract.options.options.ConfigError: there is no option algorithm; ppo is a recipe: add --recipe ppo
    """
    recipes = set(names())
    for key, value in changes.items():
        if key not in RunConfig.model_fields and isinstance(value, str) and value in recipes:
            raise ConfigError(f"there is no option {key}; {value} is a recipe: add --recipe {value}")
    for place in option_paths(RunConfig):
        word = _at(changes, f"{place.name}.name") if place.name in CHOICES and place.parts else None
        if place.parts is not None and word in recipes and word not in place.parts.names():
            raise ConfigError(
                f"{place.name}: {word} is no {place.parts.kind}, but a recipe of several parts: add --recipe {word}"
            )


def _at(changes: Mapping[str, Any], name: str) -> Any:
    value: Any = changes
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
