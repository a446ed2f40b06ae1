"""Privileges of an agent: the calls that it may make."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import gymnasium
from pydantic import Field

from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, WrapperMismatch
from manyturn.envs.tools.calls import CallRequest, call_text
from manyturn.envs.tools.tool_wrapper import ToolWrapper

_LONGEST = 500  # characters of an argument that a pattern is compared with


class Permission(Options):
    """Calls of one or more tools, with conditions on their arguments."""

    tool: str = Field(min_length=1)
    """Name of a tool, or a pattern such as `get_*`."""
    arguments: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """Argument -> a pattern such as `W*`, or a list of values, for text arguments; others may have any value."""
    stated: tuple[str, ...] = ()
    """Arguments whose value must occur in the first observation, such as the id that a customer names."""
    mentioned: tuple[str, ...] = ()
    """Words of which one must occur in the first observation, such as `roaming`, in any case of letters."""


class PrivilegesConfig(Named):
    name: Literal["privileges"] = "privileges"
    allow: tuple[Permission, ...] = Field(min_length=1)
    """Calls that the agent may make; all others are refused."""
    deny: tuple[Permission, ...] = ()
    """Calls that are refused although `allow` has them."""


@WRAPPERS.register(PrivilegesConfig)
class Privileges(ToolWrapper):
    """Refuse calls for which the agent has no privilege, in the manner of Progent (arXiv 2504.11703).

    The agent reads the refusal as an observation, and nothing is run; an action with several calls is refused as a
    whole. The measure ``refused_calls`` counts them. Name it after other wrappers of tools, so that it stands outside.

    It does not preserve the optimal policy: what is refused can no longer earn anything.
    """

    def __init__(self, env: gymnasium.Env, config: PrivilegesConfig):
        super().__init__(env)
        names = [schema["function"]["name"] for schema in self.inner("tools", ())]
        for permission in (*config.allow, *config.deny):
            if not any(fnmatchcase(name, permission.tool) for name in names):
                raise WrapperMismatch(
                    f"privileges: {permission.tool!r} fits no tool of {self.unwrapped}: give one of {', '.join(names)}"
                )
        self._config = config

    def begin(self, info: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
        return {"refused": 0}

    def instead(self, calls: Sequence[CallRequest], turn: int) -> str | None:
        refused = [call for call in calls if not self._may(call)]
        if not refused:
            return None
        self.own["refused"] += len(refused)
        return f"Refused: you have no privilege for {call_text(refused[0].name, **refused[0].arguments)[:_LONGEST]}"

    def figures(self, success: bool) -> dict[str, float]:
        return {"refused_calls": float(self.own["refused"])}

    def _may(self, call: CallRequest) -> bool:
        allowed = any(self._fits(call, one, if_unclear=False) for one in self._config.allow)
        return allowed and not any(self._fits(call, one, if_unclear=True) for one in self._config.deny)

    def _fits(self, call: CallRequest, permission: Permission, *, if_unclear: bool) -> bool:
        """True if a permission is about a call; a value that no pattern can be compared with is unclear."""
        if not fnmatchcase(call.name[:_LONGEST], permission.tool):
            return False
        for name, condition in permission.arguments.items():
            value = call.arguments.get(name)
            if not isinstance(value, str) or len(value) > _LONGEST:
                if not if_unclear or value is None:
                    return False
                continue
            if not (fnmatchcase(value, condition) if isinstance(condition, str) else value in condition):
                return False
        words = _words(self.first)
        if permission.mentioned and words.isdisjoint(map(str.lower, permission.mentioned)):
            return False
        return all(_shown(call.arguments.get(name)) in words for name in permission.stated)


def _shown(value: Any) -> str:
    """A text or a number as a request states it; empty for anything else, which none states."""
    return str(value).lower() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _words(text: str) -> set[str]:
    return {word.strip(".,;:!?()'\"").lower() for word in text.split()}
