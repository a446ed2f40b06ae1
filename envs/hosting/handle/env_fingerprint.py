"""Fingerprint of an environment: the facts that must be equal on two machines for their episodes to be the same."""

import hashlib
import inspect
from functools import cache
from pathlib import Path
from typing import Any

from manyturn.envs.contract.keys import digest
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.hosting.handle.messages import task_to_wire

LANGUAGE = 1  # a host and a driver that speak another one refuse each other


def fingerprint_of(handle: EnvHandle) -> dict[str, str]:
    """Digests of what must be equal on two machines for their episodes to be the same."""
    world = {
        "language": LANGUAGE,
        "source": _source_of(type(handle.env.unwrapped)),
        "instructions": handle.instructions,
        "roles": handle.roles,
        "splits": handle.splits,
        "max_turns": handle.max_turns,
        "parts of rewards": handle.part_names,
        "tasks": _tasks(handle),
    }
    return {name: digest(value) for name, value in world.items()}


@cache
def _source_of(kind: type) -> str:
    """Digest of the file that a class is in, as it was when this process first asked; empty where it has none."""
    return _source_now(kind)


def was_edited(kind: type) -> bool:
    """True if the file of a class has changed since this process first looked."""
    return _source_now(kind) != _source_of(kind)


def _source_now(kind: type) -> str:
    try:
        return hashlib.sha256(Path(inspect.getsourcefile(kind) or "").read_bytes()).hexdigest()
    except (OSError, TypeError):
        return ""


def _tasks(handle: EnvHandle) -> Any:
    """Number of training tasks, and the first and the last one."""
    tasks = handle.tasks("train")
    return [len(tasks), *(digest(task_to_wire(tasks[number])) for number in (0, -1) if tasks)]
