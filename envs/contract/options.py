"""Configurations: frozen, and strict about what they are given."""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from manyturn.envs.contract.facts import EnvFacts


class Options(BaseModel):
    """Base of every configuration: frozen; an unknown key is an error that suggests the right one."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_options(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise ValueError(unknown(f"{cls.__name__.removesuffix('Config')} option", key, cls.model_fields))
        return data

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        """Why these options cannot work in a run, or do nothing there, in one line with the fix; None where they work.

        ``refusals.refuse_unfit`` asks all options of a run. What a subclass says replaces what its base says.

        Args:
            run: the whole configuration of the run, a ``RunConfig``.
            env: its environment; None while only the configuration is known.
        """
        return None


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Message about a name that does not exist: the nearest ones, then all.

    >>> unknown("option", "gama", ["gamma", "eps"])
    "unknown option 'gama'; did you mean 'gamma'? There are eps, gamma"
    """
    names = sorted(known)
    close = " or ".join(map(repr, difflib.get_close_matches(str(name), names, n=2, cutoff=0.6)))
    return (
        f"unknown {what} {name!r}; "
        + (f"did you mean {close}? " if close else "")
        + (f"There are {', '.join(names)}" if names else "There is none")
    )


def one_line(error: ValidationError, *above: str) -> str:
    """What is wrong, in one line: each entry by its place, below the sections ``above``."""
    lines = []
    for problem in error.errors():
        place = ".".join(map(str, (*above, *problem["loc"])))
        lines.append(f"{place}: {problem['msg']}" if place else problem["msg"])
    return "; ".join(lines).replace("Value error, ", "")


class ConfigError(ValueError):
    """The configuration cannot be used; the text says which entry and what would do."""


Rule = Callable[[Any], str | None]
UNFINISHED = {"unfinished": True}


def check(config: Any, rules: Collection[Rule], context: Mapping[str, Any] | None = None) -> None:
    """Raise ValueError with the reason of the first rule that refuses the configuration.

    Args:
        context: of the validation; where it is UNFINISHED nothing is refused yet.
    """
    for rule in () if context == UNFINISHED else rules:
        if reason := rule(config):
            raise ValueError(reason)
