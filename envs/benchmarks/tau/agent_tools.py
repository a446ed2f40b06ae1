"""The tools of one episode: a call in, text out, with the words of the original."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from manyturn.envs.benchmarks.tau.database import Base, Database
from manyturn.envs.tools.tool import Schema, Tool, ToolError

# What arguments that a model wrote can make a tool raise; the original answers any exception with its text.
HOSTILE = (ArithmeticError, AttributeError, LookupError, RecursionError, SyntaxError, TypeError, ValueError)


class AgentTools:
    """Base of the agent's tools in one domain.

    Args:
        db: of one episode.
    """

    def __init__(self, db: Database):
        self.db = db

    def refusal(self, words: str) -> ValueError:
        """The error of a call that the domain's rules forbid."""
        return ValueError(words)


class Desk:
    """One episode's database and the agent's tools.

    Args:
        base: the shared database.
        kind: makes the tools.
        names: of the tools.
    """

    def __init__(self, base: Base, kind: type, names: Iterable[str]):
        self.db = Database(base)
        self.agent: Any = kind(self.db)
        self._names = frozenset(names)

    def call(self, name: str, arguments: Mapping[str, Any], by: str = "assistant") -> str:
        """Run a tool. Raises ToolError with the original's words.

        Args:
            by: who calls, ``assistant`` or ``user``.
        """
        if name not in self._names:
            raise ToolError(f"Tool '{name}' not found.")
        return run(getattr(self.agent, name), **arguments)

    def same(self, other: Any) -> bool:
        """Equality in the benchmark's comparison of databases."""
        return self.db.same(other.db)

    def save(self) -> Any:
        """The state as plain values."""
        return self.db.save()

    def load(self, state: Any) -> None:
        """Inverse of ``save``, on a desk that was set up for the same task."""
        self.db.load(state)


def run(function: Callable[..., str], /, **arguments: Any) -> str:
    """Call a tool's function. Raises ToolError for whatever the arguments brought about."""
    try:
        return function(**arguments)
    except HOSTILE as error:
        raise ToolError(str(error)) from None


def answer(desk: Desk, name: str, arguments: Mapping[str, Any], by: str = "assistant") -> str:
    """A call's answer as the original gives it, errors too."""
    try:
        return desk.call(name, arguments, by)
    except ToolError as error:
        return f"Error: {error}"


def tool(schema: Schema, call: Callable[[str, Mapping[str, Any]], str]) -> Tool:
    """A tool that an agent calls, of a schema and what runs it; the arguments are judged by what runs it."""
    name = schema["function"]["name"]
    return Tool(schema, lambda arguments: call(name, arguments))
