"""Entries of a plain ``gymnasium.Env``'s ``info`` under names that are read nowhere.

Other projects call the flag of a turn ``valid``. Left unread, every action would count as understood.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from manyturn.envs.contract.env.error_location import place_of_method
from manyturn.envs.contract.env.turn import ContractError, shown

FLAGS = {
    "understood": "False where the action meant nothing",
    "format_valid": "False where none could be read",
}
_OTHER_KEYS = ("admissible", "anchor", "anchor_text", "progress", "reward_parts", "success", "is_success")
_VERDICTS = frozenset({"valid", "invalid", "legal", "illegal", "understood"})
_AROUND = frozenset({"is", "was", "not", "action", "move", "format"})
_OF_WORDS = {"format": ("format_valid",), "understood": ("understood",)}  # else a verdict may be either


def checked_flags(env: object, info: Mapping[str, Any]) -> None:
    """Refuse a flag of a turn that has another name than ours, next to none of ours, or that is no truth value.

    Raises:
        ContractError: with the key to give.
    """
    for key, value in info.items():
        if key in FLAGS:
            if not _is_flag(value):
                raise step_refusal(env, f"info[{key!r}] = {shown(value)}: give True or False")
        elif (meant := _meant_by(key)) and _is_flag(value) and info.keys().isdisjoint(meant):
            names = " or ".join(f"info[{flag!r}], {FLAGS[flag]}" for flag in meant)
            raise step_refusal(env, f"info[{key!r}], which is not read: give {names}")


def misspelt_keys(keys: Iterable[Any]) -> dict[str, str]:
    """Keys that are nearly one of ours, which is missing -> ours.

    >>> misspelt_keys(["admissable", "score"])
    {'admissable': 'admissible'}
    """
    given = {key for key in keys if isinstance(key, str)}
    near = {key: difflib.get_close_matches(key, _OTHER_KEYS, n=1, cutoff=0.8) for key in sorted(given - {*_OTHER_KEYS})}
    return {key: ours[0] for key, ours in near.items() if ours and ours[0] not in given}


@lru_cache(maxsize=1000)
def _meant_by(key: Any) -> tuple[str, ...]:
    """Our names for what a key of another name says of a turn; none if it is about something else."""
    if not isinstance(key, str):
        return ()
    words = set(re.findall("[a-z]+", re.sub("(?<=[a-z])(?=[A-Z])", " ", key).lower()))
    if words & _VERDICTS and words <= _VERDICTS | _AROUND:
        return next((of_word for word, of_word in _OF_WORDS.items() if word in words), tuple(FLAGS))
    return tuple(difflib.get_close_matches(key, FLAGS, n=1, cutoff=0.85))


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.number) and value in (0, 1)


def step_refusal(env: object, text: str) -> ContractError:
    """The error for what ``step`` gave: the text, and the place of the method."""
    place = place_of_method(env, "step")
    error = ContractError(f"step() gives {text}{f' ({place})' if place else ''}")
    error.placed = place is not None
    return error
