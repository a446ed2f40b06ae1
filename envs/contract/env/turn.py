"""Answer of an environment to one action."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manyturn.envs.contract.env.error_location import place_of_method

OUTCOME = "outcome"


class ContractError(TypeError):
    """An environment gave something that the contract does not allow; the text says how to fix it.

    Attributes:
        placed: whether the text says where; if not, the traceback does.
    """

    placed = False


MOST_REWARD = 1e9  # of either sign


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn's answer. Made by ``TextEnv.go_on``, ``invalid``, ``unreadable``, ``succeed`` and ``fail``, kept legal.

    Attributes:
        text: the next observation.
        parts: named rewards; the turn's reward is their sum.
        understood: False if the action meant nothing to the environment.
        terminated: the episode ended by its own rules.
        success: whether the goal was reached; None while the episode goes on.
        format_valid: False if no action could be read at all, where actions have a syntax.
    """

    text: str
    parts: Mapping[str, float]
    understood: bool = field(default=True, kw_only=True)
    terminated: bool = field(default=False, kw_only=True)
    success: bool | None = field(default=None, kw_only=True)
    format_valid: bool = field(default=True, kw_only=True)


def checked_turn(turn: Turn) -> Turn:
    """The same turn, if its text is text and its parts are numbers. Raises ContractError.

    NaN is a number: it says that a reward could not be known, and its episode leaves its group.

    >>> checked_turn(Turn("You win.", {"bonus": True}))
    Traceback (most recent call last):
    ...
    manyturn.envs.contract.env.turn.ContractError: the reward part 'bonus' is True: give a number, such as bonus=1.0
    """
    if not isinstance(turn.text, str):
        raise ContractError(f"the observation of a turn is {shown(turn.text)}: give text, a str")
    for name, value in turn.parts.items():
        if type(value) is not float or not -MOST_REWARD <= value <= MOST_REWARD:  # NaN fails the second too
            _check_part(name, value)
    return turn


def _check_part(name: str, value: Any) -> None:
    # A truth value is refused: who writes done=True means a flag, and would have paid a reward of 1.
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isinf(value):
        unknown = "; NaN stands for a reward that is not known" if isinstance(value, float) else ""
        raise ContractError(f"the reward part {name!r} is {shown(value)}: give a number, such as {name}=1.0{unknown}")
    if abs(float(value)) > MOST_REWARD:
        raise ContractError(f"the reward part {name!r} is {too_large(float(value))}")


def too_large(reward: float) -> str:
    """Error on a reward beyond ``MOST_REWARD``, with the fix."""
    return f"{reward:g}, and learning squares rewards in float32: divide it, so that it stays within {MOST_REWARD:g}"


def wrong_return(env: object, method: str, value: object, fix: str, part: str = "") -> ContractError:
    """The error for what a method of an environment returned.

    Args:
        part: which part of it is meant, such as ``"as the reward "``.
    """
    place = place_of_method(env, method)
    name = type(value).__name__
    kind = "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    kind += f" of {len(value)}" if isinstance(value, tuple) and method != "respond" else ""
    error = ContractError(f"{method}() returned {part}{kind}: return {fix}{f' ({place})' if place else ''}")
    error.placed = place is not None
    return error


def checked_actions(env: object, actions: Any) -> list[str]:
    """Check that ``admissible()`` returned a list of texts, and return it. Raises ContractError."""
    # A set has another order in each process, and a text would be taken for a list of its letters.
    if not isinstance(actions, list | tuple):
        raise wrong_return(env, "admissible", actions, "a list of texts, or None where they cannot be listed")
    if strangers := [action for action in actions if not isinstance(action, str)]:
        raise ContractError(f"admissible() lists {shown(strangers[0])}: list texts alone, each a str")
    return list(actions)


def checked_measures(env: object, measures: Any) -> dict[str, float]:
    """Check that ``measures()`` returned numbers by name, and return them. Raises ContractError."""
    if not isinstance(measures, Mapping) or not all(isinstance(name, str) for name in measures):
        raise wrong_return(env, "measures", measures, 'a dict of numbers by name, such as {"submitted": 1.0}')
    for name, value in measures.items():
        if isinstance(value, str) or not hasattr(value, "__float__"):
            raise wrong_return(env, "measures", value, "a number for each name", f"for {name!r} ")
    return dict(measures)


def shown(value: object) -> str:
    """A value as an error shows it.

    >>> shown(None), shown("1"), shown(["x"] * 50)
    ('None', "'1'", "['x', 'x', 'x', 'x', 'x', 'x', 'x', 'x',…")
    """
    text = repr(value)
    return text if len(text) <= 41 else f"{text[:40]}…"
