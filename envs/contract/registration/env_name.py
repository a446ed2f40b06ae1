"""A name for an environment that is given as a class, as Python's callers do."""

import inspect
from pathlib import Path
from typing import Any

import gymnasium

from manyturn.envs.contract.registration.id_registration import register


def env_name(env: Any) -> str:
    """The name by which everything else knows an environment.

    Args:
        env: an id or ``FILE.py:Class``, which is the name; or a class. A class of a module with a file is named by that
            file. One of a notebook, or of the script that runs, is registered as ``local/CLASS-v0``: this process alone
            knows it, and the newest class of a name counts.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(env, str):
        return env
    if not (isinstance(env, type) and issubclass(env, gymnasium.Env)):
        raise TypeError(
            f"an environment is named by an id such as 'manyturn/Maze-v0', 'FILE.py:Class', or a class, not {env!r:.80}"
        )
    module = inspect.getmodule(env)
    file = getattr(module, "__file__", None)
    if file and env.__module__ != "__main__" and getattr(module, env.__name__, None) is env:
        return f"{Path(file).resolve()}:{env.__name__}"
    name = f"local/{env.__name__}-v0"
    gymnasium.registry.pop(name, None)
    register(name, env)
    return name
