"""Recipes of manyturn, in TOML, by name: complete runs, which name an environment, and methods, which do not.

A method holds only what it is: stages, heads, regularisers, a curriculum, and its authors' settings as far as they make
sense at any scale. Recipes are laid on top of each other; see ``stack``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyturn.envs.contract.options.options import ConfigError, unknown
from manyturn.trainers.recipe.config import names_envs, read_toml

if TYPE_CHECKING:
    from manyturn.recipes.stack import NamedRecipe

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Names of all recipes."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def whole_runs() -> list[str]:
    """Names of the recipes of complete runs."""
    return [name for name in names() if names_envs(load_recipe(name))]


def methods() -> list[str]:
    """Names of the recipes of methods."""
    runs = whole_runs()
    return [name for name in names() if name not in runs]


def load_recipe(name: str) -> dict[str, Any]:
    """The values of a recipe: a name from ``names``, or a file's path."""
    return read_toml(file_of(name))


def named_recipe(name: str) -> "NamedRecipe":
    """A recipe with what it is: a method, a complete run, or the user's file."""
    from manyturn.recipes.stack import NamedRecipe  # which needs the stages of a run

    values, is_file = load_recipe(name), file_of(name).parent != FOLDER
    is_method = not is_file and not names_envs(values)
    return NamedRecipe(name, values, is_method, is_file)


@contextmanager
def refusals_by_recipe(names: Sequence[str]) -> Iterator[None]:
    """Name the recipe in a refusal of one of its stages: the recipe is what the user has named."""
    try:
        yield
    except ConfigError as error:
        stage, needs, rest = str(error).partition(" needs ")
        for name in names if needs else ():
            if f"'{stage}'" in repr(load_recipe(name).get("credit")):
                raise ConfigError(f"the recipe {name} needs {rest}") from error
        raise


def file_of(name: str) -> Path:
    """The file of a recipe."""
    file = FOLDER / f"{name}.toml"
    if file.is_file():
        return file
    if name.endswith(".toml"):
        return Path(name)
    raise ConfigError(f"{unknown('recipe', name, names())}; a file ends in .toml")
