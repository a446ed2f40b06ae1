"""Methods of an audit by name: advantages, reward stages, modulations and recipes, put together by plus signs.

``gigpo``, ``gigpo:turn_weight=2,gamma=0.9``, ``gra+gigpo``, ``advantage=gigpo+modulation=empg``, ``gigpo+branches``
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from manyturn.envs.contract.options.options import one_line, unknown
from manyturn.recipes import load_recipe
from manyturn.recipes import methods as recipes_of_methods
from manyturn.recipes.stack import stacked
from manyturn.terminal.overrides import read_value
from manyturn.trainers.credit.audit.method_credit import BranchedCredit
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS, REWARDS

_STAGES = {"advantage": ADVANTAGES, "rewards": REWARDS, "modulation": MODULATIONS}
_CARRIER = "gigpo"  # what reward stages and modulations change where a method names no advantage
_BRANCHES = "branches"
_VALUES = {"part": "NAME"}  # what stands for the value of an option in a message
FIRST = "grpo"  # what the others are compared with


class MethodError(ValueError):
    """A word that names no method."""


def every_method() -> dict[str, CreditConfig]:
    """Every registered advantage with its defaults, GRPO first, and every other stage that needs no options, each on
    top of GiGPO."""
    methods, _ = _registered()
    return methods


def methods_with_options() -> dict[str, str]:
    """Registered methods that have no defaults -> what to write in their place."""
    _, reasons = _registered()
    return reasons


def _registered() -> tuple[dict[str, CreditConfig], dict[str, str]]:
    words = [FIRST, *(name for name in ADVANTAGES.names() if name != FIRST)]
    words += [f"{kind}={name}+{_CARRIER}" for kind in ("rewards", "modulation") for name in _STAGES[kind].names()]
    ready, reasons = dict[str, CreditConfig](), dict[str, str]()
    for word in words:
        try:
            ready[word] = method_of(word)
        except MethodError as error:
            # Options that have no default, such as the stratum of a method, are those of the recipe by that name.
            if word in recipes_of_methods():
                ready[word] = method_of(f"recipe={word}")
            else:
                reasons[word] = str(error)
    return ready, reasons


def methods_of(words: Sequence[str]) -> dict[str, CreditConfig]:
    """The methods that words name, in their order; no words name every one. Raises MethodError."""
    return {word: method_of(word) for word in words} if words else every_method()


def method_of(word: str) -> CreditConfig:
    """The method that a word names.

    >>> method_of("gigpo:turn_weight=2,gamma=0.9").advantage.turn_weight
    2.0
    >>> [stage.name for stage in method_of("rewards=invalid_penalty+gigpo").rewards]
    ['invalid_penalty']

    A last part ``branches`` lets the method see branches of every turn, as more visits to the situations on their way.

    Raises:
        MethodError: a part of it names nothing, or does not go with the others.
    """
    parts = [part.strip() for part in word.split("+")]
    kind = BranchedCredit if _BRANCHES in parts else CreditConfig
    recipes = [_part(part) for part in parts if part != _BRANCHES]
    if not any("advantage" in recipe["credit"] for recipe in recipes):
        recipes.append({"credit": {"advantage": {"name": _CARRIER}}})
    values = stacked(recipes)["credit"]
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise MethodError(f"the method {word}: {_without_default(error, values) or one_line(error)}") from None
    except ValueError as error:
        raise MethodError(f"the method {word}: {error}") from None


def _part(word: str) -> Mapping[str, Any]:
    """The credit section that one part of a word stands for."""
    name, colon, options = word.partition(":")
    kind, equals, rest = name.partition("=")
    if equals and kind not in ("recipe", *_STAGES):
        raise MethodError(unknown("kind of method", kind, ["recipe", *_STAGES]) + f", as in advantage={rest}")
    name = rest if equals else name
    if not equals:
        kind = next((kind for kind, stages in _STAGES.items() if name in stages.names()), "recipe")
        if not colon and kind != "advantage" and name in recipes_of_methods():
            kind = "recipe"  # options are those of the stage
    values = dict(_option(one, word) for one in options.split(",")) if colon else {}
    if kind != "recipe":
        _refuse_unknown(kind, name)
        entry = {"name": name, **values}
        return {"credit": {kind: entry if kind == "advantage" else [entry]}}
    if name not in recipes_of_methods():
        names = sorted({*recipes_of_methods(), *(each for stages in _STAGES.values() for each in stages.names())})
        raise MethodError(unknown("method", name, names))
    if values:
        raise MethodError(f"{word}: options belong to a stage, as in advantage={name}:{options}")
    if not (section := load_recipe(name).get("credit")):
        raise MethodError(f"the recipe {name} changes no credit: turns get the same without it")
    return {"credit": section}


def _without_default(error: ValidationError, values: Mapping[str, Any]) -> str | None:
    """The fix where an option is missing: a recipe that sets it, or the option itself; None where all are there."""
    for problem in error.errors():
        if problem["type"] != "missing":
            continue
        *place, option = problem["loc"]
        stage: Any = values
        for step in place:
            stage = stage[step]
        name = _named(stage)
        fix = f"{name}:{option}={_VALUES.get(str(option), 'VALUE')}"
        recipes = [recipe for recipe in recipes_of_methods() if name in _stages_of(recipe)]
        if recipes:
            fix = f"{min(recipes, key=len)}+{_CARRIER}, a recipe that sets it, or {fix}"
        return f"{name} has no default for {option}: write {fix}"
    return None


def _stages_of(recipe: str) -> list[str]:
    """Reward stages and modulations that a recipe names."""
    section = load_recipe(recipe).get("credit", {})
    return [_named(entry) for kind in ("rewards", "modulation") for entry in section.get(kind, ())]


def _named(entry: Any) -> Any:
    return entry["name"] if isinstance(entry, Mapping) else entry


def _refuse_unknown(kind: str, name: str) -> None:
    try:
        _STAGES[kind].entry(name)
    except ValueError as error:
        raise MethodError(str(error)) from None


def _option(text: str, word: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise MethodError(f"{word}: write options as NAME=VALUE, such as gigpo:turn_weight=2.0")
    return name.strip(), read_value(value.strip())
