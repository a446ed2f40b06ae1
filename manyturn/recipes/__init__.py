"""Recipes of manyturn, in TOML, by name: complete runs, which name an environment, and methods, which do not.

A method holds only what it is: stages, heads, regularisers, a curriculum, and its authors' settings as far as they make
sense at any scale. Recipes are laid on top of each other; see ``stack``.
"""

from pathlib import Path
from typing import Any

from manyturn.envs.contract.options import ConfigError, unknown
from manyturn.trainers.recipe.config import read_toml

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Names of all recipes."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def whole_runs() -> list[str]:
    """Names of the recipes of complete runs."""
    return [name for name in names() if "id" in load_recipe(name).get("env", {})]


def methods() -> list[str]:
    """Names of the recipes of methods."""
    runs = whole_runs()
    return [name for name in names() if name not in runs]


def load_recipe(name: str) -> dict[str, Any]:
    """The values of a recipe: a name from ``names``, or a file's path."""
    return read_toml(file_of(name))


def file_of(name: str) -> Path:
    """Where a recipe is."""
    file = FOLDER / f"{name}.toml"
    if file.is_file():
        return file
    if name.endswith(".toml"):
        return Path(name)
    raise ConfigError(f"{unknown('recipe', name, names())}; a file ends in .toml")
