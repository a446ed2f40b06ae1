"""Messages between a driver and a host of environments.

A connection is a WebSocket at ``/host``. Its frames are lines of JSON (``messages.py``). The driver's first message
names the environment, and the host's answer says how many episodes it holds. Then each message of the driver has a
number, which the answer repeats:

    {"id": 1, "op": "reset", "episode": 7, "task": {...}, "seed": 3}    {"id": 1, "value": [...]}
    {"id": 2, "op": "step", "episode": 7, "action": "north"}            {"id": 2, "error": {"kind": "env", ...}}
    {"id": 3, "op": "snapshot", "episode": 7}                           {"id": 3, "value": "..."}
    {"id": 4, "op": "restore", "episode": 7, "snapshot": "..."}         {"id": 4, "value": [...]}
    {"id": 5, "op": "leave", "episode": 7}                              (no answer)
    {"id": 6, "op": "ping"}                                             {"id": 6, "value": null}

An episode belongs to its connection and ends with it. Nothing that is said can name code: what a host builds is decided
where it is started.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from manyturn.envs.contract.env.turn import MOST_REWARD
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.handle.messages import ERRORS, error_kind, step_from_wire
from manyturn.envs.hosting.local.worker import WorkerError

PATH = "/host"


def error_to_wire(error: Exception) -> dict[str, Any]:
    """An error in place of an answer."""
    plain = {"kind": error_kind(error) or "worker", "message": str(error)}
    return (
        {**plain, "suspect": error.suspect, "bystander": error.bystander} if isinstance(error, WorkerError) else plain
    )


def error_from_wire(plain: Mapping[str, Any]) -> Exception:
    """Inverse of ``error_to_wire``. Raises ValueError, KeyError or TypeError for anything else."""
    text = _checked("message", plain["message"], _is_text)
    if plain["kind"] == "worker":
        return WorkerError(text, plain.get("suspect") is True, plain.get("bystander") is True)
    return ERRORS[plain["kind"]](text)


def answer_from_wire(values: Any) -> Answer:
    """Parse an environment's answer. Raises ValueError or TypeError for one that no environment of ours gives."""
    if not isinstance(values, list):
        raise TypeError(f"an answer is a list, not {type(values).__name__}")
    answer = step_from_wire(values)
    for name, value in answer._asdict().items():
        _checked(name, value, _FIELDS[name])
    return answer


def action_from_wire(value: Any) -> str:
    """Parse an expert's answer. Raises ValueError."""
    return _checked("action", value, _is_text)


def snapshot_from_wire(value: Any) -> str:
    """Parse a snapshot. Raises ValueError."""
    return _checked("snapshot", value, _is_text)


def _checked(name: str, value: Any, is_sound: Callable[[Any], bool]) -> Any:
    if not is_sound(value):
        raise ValueError(f"{name} cannot be {value!r:.60}")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float)


def _is_reward(value: Any) -> bool:
    """A float, or NaN for one that is not known."""
    return isinstance(value, float) and (math.isnan(value) or abs(value) <= MOST_REWARD)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _or_none(is_sound: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_sound(value)


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "observation": _is_text,
    "reward": _is_reward,
    "terminated": _is_flag,
    "truncated": _is_flag,
    "format_valid": _is_flag,
    "understood": _is_flag,
    "parts": _are_numbers,
    "anchor": _is_text,
    "admissible": _or_none(lambda value: isinstance(value, list) and all(map(_is_text, value))),
    "success": _or_none(_is_flag),
    "progress": _or_none(_is_number),
    "answer": _or_none(_is_text),
    "measures": _are_numbers,
    "role": _is_text,
    "anchor_text": _or_none(_is_text),
}
assert _FIELDS.keys() == set(Answer._fields)
