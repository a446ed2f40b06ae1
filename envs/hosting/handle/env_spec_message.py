"""First message to a worker process: the environment to make, and its making there."""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO

import gymnasium
from gymnasium.envs.registration import EnvSpec

from manyturn.envs.contract.options.plugins import PluginWarning
from manyturn.envs.contract.registration.env_registry import spec_of
from manyturn.envs.contract.wrappers.reward_wrapper import plain_wrappers

KEEPER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("process_reaper.py")))


def hello_of(name: str, kwargs: Mapping[str, Any] | None = None, wrappers: Sequence[Any] = ()) -> dict[str, Any]:
    """Facts that another process needs to make the same environment as this one.

    Raises:
        ValueError: it is defined in the script that runs, which no other process can import.
    """
    file, colon, cls = name.rpartition(":")
    register: list[str] = []
    if colon and file.endswith(".py"):
        name = f"{Path(file).resolve()}:{cls}"
    elif (spec := spec_of(name)) is not None:
        spec = copy(spec)
        if isinstance(spec.entry_point, type):
            if spec.entry_point.__module__ == "__main__":
                raise ValueError(
                    f"{name} is defined in the script that runs, which a worker cannot import: "
                    "put the class into a file and name it FILE.py:Class, or use workers=0"
                )
            spec.entry_point = f"{spec.entry_point.__module__}:{spec.entry_point.__qualname__}"
        register.append(spec.to_json())
    return {
        "name": name,
        "kwargs": dict(kwargs or {}),
        "wrappers": plain_wrappers(wrappers),
        "register": register,
        "path": sys.path,
    }


def heed(hello: Mapping[str, Any]) -> None:
    """Make this process know the environment that ``hello_of`` described."""
    warnings.simplefilter("ignore", PluginWarning)  # the process that started this one has said it
    sys.path += [entry for entry in hello["path"] if entry not in sys.path]
    for spec in map(EnvSpec.from_json, hello["register"]):
        if spec_of(spec.id) is None:
            gymnasium.registry[spec.id] = spec


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Keep standard input and output for messages; the environment gets an empty input and prints to stderr."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers
