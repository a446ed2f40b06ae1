"""Messages between a process and the workers that run its environments: JSON, one message a line, never pickle."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.text_env import Unsupported
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.contract.wrappers.reward_wrapper import WrapperMismatch
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, PlaceLost

LIMIT = 2**28  # bytes in one line: observations of 10 MB pass with room to spare
ERRORS: dict[str, type[Exception]] = {  # errors that are an answer, by their kind; a PlaceLost is an EnvError too
    "place": PlaceLost,
    "env": EnvError,
    "unsupported": Unsupported,
    "wrapper": WrapperMismatch,
    "order": ResetNeeded,
}

_OBSERVATION: Any = True  # in place of a text that is in the message already
_TASK = tuple(field.name for field in fields(Task) if field.name != "env")  # an environment knows only itself


def encode(message: Mapping[str, Any]) -> bytes:
    """One line. Every Python string survives, lone surrogates too: escaping them would join neighbours to one sign."""
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Inverse of ``encode``; raises ValueError for anything that is not one complete message."""
    if not line.endswith(b"\n"):
        raise ValueError(f"a message of {len(line)} bytes ends in the middle")
    message = json.loads(line.decode("utf-8", "surrogatepass"))
    if not isinstance(message, dict):
        raise ValueError(f"a message is an object, not {type(message).__name__}")
    return message


def error_kind(error: BaseException) -> str | None:
    """The first kind in ``ERRORS`` that an error is of; None for a fault of another kind."""
    return next((kind for kind, cls in ERRORS.items() if isinstance(error, cls)), None)


def step_to_wire(step: Answer) -> list[Any]:
    """The values of ``Answer`` in the order of its fields; a situation's text that is the observation goes once."""
    return list(step._replace(anchor_text=_OBSERVATION) if step.anchor_text == step.observation else step)


def step_from_wire(values: list[Any]) -> Answer:
    """Inverse of ``step_to_wire``."""
    step = Answer._make(values)
    return step._replace(anchor_text=step.observation) if step.anchor_text is _OBSERVATION else step


def task_to_wire(task: Task) -> dict[str, Any]:
    """The fields of ``Task``; its params must be plain values, as ``Task`` asks."""
    return {name: getattr(task, name) for name in _TASK}


def task_from_wire(values: Mapping[str, Any]) -> Task:
    """Inverse of ``task_to_wire``, but for tuples inside ``params``, which come back as lists and hash the same."""
    return Task(**{**values, "tags": tuple(values["tags"])})
