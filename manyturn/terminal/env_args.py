"""Arguments of an environment's constructor, given as in a configuration: a table, or one by one by their names."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

_EXAMPLE = '{difficulty = "hard"}'


def _arguments(kind: type, given: Sequence[Token] | Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as given: one token with a table, or a token per argument."""
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


def read_wrappers(given: str | Sequence[Any]) -> list[Any]:
    """Turn-level rewards, also as TOML text. Raises ValueError.

    >>> read_wrappers('[{name = "turn_cost", cost = 0.01}]')
    [{'name': 'turn_cost', 'cost': 0.01}]
    """
    try:
        value = tomllib.loads(f"value = {given}")["value"] if isinstance(given, str) else list(given)
    except tomllib.TOMLDecodeError:
        value = None
    if not isinstance(value, list) or not all(isinstance(wrapper, dict | str) for wrapper in value):
        raise ValueError('wrappers is no TOML list of tables, such as [{name = "turn_cost", cost = 0.01}]')
    return value


_NAMES = ("--env.args", "--env-args")
EnvArgs = Annotated[dict[str, Any] | None, Parameter(name=_NAMES, accepts_keys=True, n_tokens=1, converter=_arguments)]
"""``--env.args '{difficulty = "hard"}'`` or ``--env.args.difficulty hard``; a dash does for the dot."""
