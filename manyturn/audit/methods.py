"""Methods of an audit by name: advantages, reward stages, modulations and recipes, put together by plus signs.

``gigpo``, ``gigpo:turn_weight=2,gamma=0.9``, ``gra+gigpo``, ``advantage=gigpo+modulation=empg``
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from manyturn.envs.contract.options.options import one_line, unknown
from manyturn.recipes import load_recipe, methods
from manyturn.recipes.stack import stacked
from manyturn.terminal.overrides import read_value
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS, REWARDS

_STAGES = {"advantage": ADVANTAGES, "rewards": REWARDS, "modulation": MODULATIONS}
_CARRIER = "gigpo"  # what reward stages and modulations change where a method names no advantage
FIRST = "grpo"  # what the others are compared with


class MethodError(ValueError):
    """A word that names no method."""


def every_method() -> dict[str, CreditConfig]:
    """Every registered advantage with its defaults, GRPO first, and every other stage that needs no options, each on
    top of GiGPO."""
    words = [FIRST, *(name for name in ADVANTAGES.names() if name != FIRST)]
    words += [f"{kind}={name}+{_CARRIER}" for kind in ("rewards", "modulation") for name in _STAGES[kind].names()]
    able = dict[str, CreditConfig]()
    for word in words:
        # Options that have no default, such as the stratum of a method, are those of the recipe by that name.
        for attempt in (word, f"recipe={word}"):
            with contextlib.suppress(MethodError):
                able.setdefault(word, method_of(attempt))
    return able


def methods_of(words: Sequence[str]) -> dict[str, CreditConfig]:
    """The methods that words name, in their order; no words name every one. Raises MethodError."""
    return {word: method_of(word) for word in words} if words else every_method()


def method_of(word: str) -> CreditConfig:
    """The method that a word names.

    >>> method_of("gigpo:turn_weight=2,gamma=0.9").advantage.turn_weight
    2.0
    >>> [stage.name for stage in method_of("rewards=invalid_penalty+gigpo").rewards]
    ['invalid_penalty']

    Raises:
        MethodError: a part of it names nothing, or does not go with the others.
    """
    recipes = [_part(part.strip()) for part in word.split("+")]
    if not any("advantage" in recipe["credit"] for recipe in recipes):
        recipes.append({"credit": {"advantage": {"name": _CARRIER}}})
    try:
        return CreditConfig.model_validate(stacked(recipes)["credit"])
    except ValidationError as error:
        raise MethodError(f"the method {word}: {one_line(error)}") from None
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
        kind = "recipe" if kind != "advantage" and name in methods() else kind
    values = dict(_option(one, word) for one in options.split(",")) if colon else {}
    if kind != "recipe":
        _refuse_unknown(kind, name)
        entry = {"name": name, **values}
        return {"credit": {kind: entry if kind == "advantage" else [entry]}}
    if name not in methods():
        names = sorted({*methods(), *(each for stages in _STAGES.values() for each in stages.names())})
        raise MethodError(unknown("method", name, names))
    if values:
        raise MethodError(f"{word}: options belong to a stage, as in advantage={name}:{options}")
    return {"credit": load_recipe(name).get("credit", {})}


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
