"""tau-bench's desks."""

from collections.abc import Callable, Mapping
from typing import Any

from manyturn.envs.benchmarks.tau.desk import run
from manyturn.envs.benchmarks.tau.store import Base, Database
from manyturn.envs.benchmarks.tau.v1 import airline, retail
from manyturn.envs.tools.tool import ToolError

LEAVES = "transfer_to_human_agents"  # ends the episode, and is left out where gold actions are replayed
TABLES = {"retail": ("orders", "products", "users"), "airline": ("flights", "reservations", "users")}


def _named(functions: tuple[Callable[..., str], ...]) -> dict[str, Callable[..., str]]:
    """Functions by name, under the names that the original has in Python's messages about arguments."""
    for function in functions:
        function.__qualname__ = function.__name__.title().replace("_", "") + ".invoke"
    return {function.__name__: function for function in functions}


FUNCTIONS = {"retail": _named(retail.TOOLS), "airline": _named(airline.TOOLS)}


class Desk:
    """One episode's database and tools.

    Args:
        base: the shared database.
        domain: ``retail`` or ``airline``.
    """

    def __init__(self, base: Base, domain: str):
        self.db = Database(base)
        self._functions = FUNCTIONS[domain]

    def call(self, name: str, arguments: Mapping[str, Any], by: str = "assistant") -> str:
        function = self._functions.get(name)
        if function is None:
            raise ToolError(f"Unknown action {name}")
        return run(function, self.db, **arguments)

    def same(self, other: "Desk") -> bool:
        return self.db.same(other.db)

    def save(self) -> Any:
        return self.db.save()

    def load(self, state: Any) -> None:
        self.db.load(state)
