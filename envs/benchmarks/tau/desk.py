"""The tools of one episode: a call in, text out, with the words of the original."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from manyturn.envs.tools.tool import Schema, Tool, ToolError

# What arguments that a model wrote can make a tool raise; the original answers any exception with its text.
HOSTILE = (ArithmeticError, AttributeError, LookupError, RecursionError, SyntaxError, TypeError, ValueError)


class Desk(Protocol):
    """One episode's databases and tools."""

    def call(self, name: str, arguments: Mapping[str, Any], by: str = "assistant") -> str:
        """Run a tool. Raises ToolError with the original's words.

        Args:
            by: who calls, ``assistant`` or ``user``.
        """
        ...

    def same(self, other: Any) -> bool:
        """Whether both stand as the benchmark's comparison of databases wants it."""
        ...

    def save(self) -> Any:
        """The state as plain values."""
        ...

    def load(self, state: Any) -> None:
        """Inverse of ``save``, on a desk that was set up for the same task."""
        ...


def run(function: Callable[..., str], /, *first: Any, **arguments: Any) -> str:
    """Call a tool's function. Raises ToolError for whatever the arguments brought about."""
    try:
        return function(*first, **arguments)
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
