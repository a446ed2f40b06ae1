"""Arguments of an environment's constructor, given as in a configuration: a table, or one by one by their names."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

_EXAMPLE = '{difficulty = "hard"}'


def _arguments(kind: type, given: Sequence[Token] | Mapping[str, Any]) -> dict[str, Any]:
    """What was given: one token with a table, or tokens by argument."""
    if isinstance(given, Mapping):
        return {name: _value(value) for name, value in given.items()}
    text = given[0].value
    try:
        table = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"env.args is no TOML table, such as {_EXAMPLE}: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(f"env.args is no TOML table, such as {_EXAMPLE}, but {text}")
    return table


def _value(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {name: _value(value) for name, value in given.items()}
    if len(given) > 1:
        raise ValueError(f"{given[0].keyword} is given twice: give it once")
    try:
        return tomllib.loads(f"value = {given[0].value}")["value"]
    except tomllib.TOMLDecodeError:
        return given[0].value


_NAMES = ("--env.args", "--env-args")
EnvArgs = Annotated[dict[str, Any] | None, Parameter(name=_NAMES, accepts_keys=True, n_tokens=1, converter=_arguments)]
"""``--env.args '{difficulty = "hard"}'`` or ``--env.args.difficulty hard``; a dash does for the dot."""
