"""manyturn: a gym for language-model agents that take many turns.

Importing it registers the environment ids and does nothing else; names load when first used. docs/python.md shows them.
"""

import difflib
import importlib
from typing import TYPE_CHECKING, Any

from manyturn.envs.contract.registration.builtin_envs import register_all

if TYPE_CHECKING:
    from manyturn import credit
    from manyturn.agents.scorecard.scorecard import scorecard
    from manyturn.api.comparison import compare_folders as compare
    from manyturn.api.evaluation import evaluate
    from manyturn.api.improvement import improve
    from manyturn.api.loaded_policy import load_policy
    from manyturn.api.training import resume, train
    from manyturn.audit.audit import credit_audit
    from manyturn.envs.conformance.check_runner import check
    from manyturn.envs.contract.env.text_env import TextEnv
    from manyturn.envs.contract.env.text_space import TextSpace
    from manyturn.envs.contract.env.turn import Turn
    from manyturn.envs.contract.random_keys import digest
    from manyturn.envs.contract.registration.env_registry import make
    from manyturn.envs.contract.registration.id_registration import register
    from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of
    from manyturn.envs.tools import Toolset

_HOMES = {
    "GeneratedTasks": "manyturn.envs.contract.tasks.task:GeneratedTasks",
    "Task": "manyturn.envs.contract.tasks.task:Task",
    "TextEnv": "manyturn.envs.contract.env.text_env:TextEnv",
    "TextSpace": "manyturn.envs.contract.env.text_space:TextSpace",
    "Toolset": "manyturn.envs.tools:Toolset",
    "Turn": "manyturn.envs.contract.env.turn:Turn",
    "check": "manyturn.envs.conformance.check_runner:check",
    "compare": "manyturn.api.comparison:compare_folders",
    "credit": "manyturn.credit",
    "credit_audit": "manyturn.audit.audit:credit_audit",
    "digest": "manyturn.envs.contract.random_keys:digest",
    "evaluate": "manyturn.api.evaluation:evaluate",
    "improve": "manyturn.api.improvement:improve",
    "load_policy": "manyturn.api.loaded_policy:load_policy",
    "make": "manyturn.envs.contract.registration.env_registry:make",
    "register": "manyturn.envs.contract.registration.id_registration:register",
    "resume": "manyturn.api.training:resume",
    "scorecard": "manyturn.agents.scorecard.scorecard:scorecard",
    "split_of": "manyturn.envs.contract.tasks.task:split_of",
    "train": "manyturn.api.training:train",
}
__version__ = "0.1.0"
__all__ = [
    "GeneratedTasks",
    "Task",
    "TextEnv",
    "TextSpace",
    "Toolset",
    "Turn",
    "__version__",
    "check",
    "compare",
    "credit",
    "credit_audit",
    "digest",
    "evaluate",
    "improve",
    "load_policy",
    "make",
    "register",
    "resume",
    "scorecard",
    "split_of",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        near = difflib.get_close_matches(name, __all__, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(__all__)}"
        if name in importlib.import_module("manyturn.credit").__all__:
            hint = f"did you mean manyturn.credit.{name}?"
        raise AttributeError(f"module 'manyturn' has no attribute {name!r}; {hint}")
    module, _, member = _HOMES[name].partition(":")
    target = importlib.import_module(module)
    value = getattr(target, member) if member else target
    return globals().setdefault(name, value)  # so that the next access finds it here


def __dir__() -> list[str]:
    return list(__all__)


register_all()
