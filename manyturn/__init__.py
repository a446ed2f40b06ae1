"""manyturn: a gym for language-model agents that take many turns.

Importing it registers the environment ids and does nothing else; names load when first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from manyturn.envs.contract.catalog import register_all

if TYPE_CHECKING:
    from manyturn.envs.contract.environments import make, register
    from manyturn.envs.contract.space import TextSpace
    from manyturn.envs.contract.task import GeneratedTasks, Task
    from manyturn.envs.contract.text_env import TextEnv
    from manyturn.envs.contract.turn import Turn
    from manyturn.envs.tools import Toolset

_HOMES = {
    "make": "manyturn.envs.contract.environments",
    "register": "manyturn.envs.contract.environments",
    "TextSpace": "manyturn.envs.contract.space",
    "Task": "manyturn.envs.contract.task",
    "GeneratedTasks": "manyturn.envs.contract.task",
    "TextEnv": "manyturn.envs.contract.text_env",
    "Turn": "manyturn.envs.contract.turn",
    "Toolset": "manyturn.envs.tools",
}
__version__ = "0.1.0"
__all__ = ["GeneratedTasks", "Task", "TextEnv", "TextSpace", "Toolset", "Turn", "__version__", "make", "register"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'manyturn' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


register_all()
