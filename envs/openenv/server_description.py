"""Description that an OpenEnv server gives of its environment: words and schemas."""

from collections.abc import Mapping
from typing import Any

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.openenv.address import Address
from manyturn.envs.openenv.task_lists import TaskLists

_LONGEST_VERSION = 100


class About(TaskLists):
    """A server's answers. Raises OutsideLost if nothing answers, NeedsSetup if it is no server of OpenEnv.

    Args:
        address: of the server.
        seconds: that an answer may take.

    Attributes:
        description: what the server says of the environment; may be empty.
        version: of the environment there, which one of ours changes with its identity; None where none is given.
        action, observation: JSON schemas.
        splits: in the server's order; empty if it lists no tasks.
    """

    def __init__(self, address: Address, seconds: float):
        self._address, self._seconds = address, seconds
        schema, words = self.response("GET", "/schema"), self.response("GET", "/metadata")
        if not isinstance(schema, Mapping) or not all(
            _is_object(schema.get(side)) for side in ("action", "observation")
        ):
            raise NeedsSetup(
                f"{address.http} answers, but gives no schema of actions and observations at /schema: is it a server "
                "of OpenEnv, and is the address complete?"
            )
        self.action, self.observation = schema["action"], schema["observation"]
        words = words if isinstance(words, Mapping) else {}
        description, version = words.get("description"), words.get("version")
        self.version = version[:_LONGEST_VERSION] if isinstance(version, str) else None
        self.description = description.strip() if isinstance(description, str) else ""
        super().__init__(address, seconds)


def _is_object(schema: Any) -> bool:
    return isinstance(schema, Mapping) and isinstance(schema.get("properties", {}), Mapping)
