"""A set of tools: it reads calls, checks them, runs them, and answers with text whatever was written."""

import difflib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pydantic_core import to_json

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.tools.calls import LONGEST, BadCall, CallRequest, read_calls
from manyturn.envs.tools.tool import BadArguments, Schema, Tool, ToolError, tool_of
from manyturn.envs.tools.tool_prompt import with_tools


class ToolFault(RuntimeError):
    """A tool broke, by the environment's fault; the cause is chained."""


class Call(NamedTuple):
    """A call and what became of it.

    Attributes:
        name: of the tool, known or not.
        arguments: as they stand in the call.
        text: what the agent reads.
        valid: False if there is no such tool or the arguments do not fit it; then nothing was run.
        refused: the tool declined with a ToolError.
    """

    name: str
    arguments: dict[str, Any]
    text: str
    valid: bool = True
    refused: bool = False

    @property
    def done(self) -> bool:
        """True if the tool did it."""
        return self.valid and not self.refused


class Answered(NamedTuple):
    """Answer of a toolset to an action.

    Attributes:
        text: the results, a line for each call; results are text as the tool gives it, or JSON.
        calls: in order; empty if the action could not be read.
        valid: whether every call was understood. A tool that declines was understood.
        readable: whether calls could be read at all.
    """

    text: str
    calls: tuple[Call, ...]
    valid: bool
    readable: bool = True

    def turn(self, env: TextEnv, **parts: float) -> Turn:
        """The turn of an episode that continues: ``go_on``, ``invalid`` or ``unreadable``, with these reward parts."""
        if not self.readable:
            return env.unreadable(self.text, **parts)
        return env.go_on(self.text, **parts) if self.valid else env.invalid(self.text, **parts)


class Toolset:
    """Tools by name.

    Args:
        tools: typed functions or bound methods with docstrings (see ``tool_of``), or ``Tool``.
        most_calls: how many calls one action may make.
        longest: characters that one action may have.

    Attributes:
        schemas: of all tools, in OpenAI's form; what an environment offers as its attribute ``tools``.
    """

    def __init__(self, tools: Iterable[Callable[..., Any] | Tool], most_calls: int = 16, longest: int = LONGEST):
        made = [tool if isinstance(tool, Tool) else tool_of(tool) for tool in tools]
        self._tools = {tool.name: tool for tool in made}
        if len(self._tools) < len(made):
            twice = next(tool.name for tool in made if [other.name for other in made].count(tool.name) > 1)
            raise ValueError(f"two tools are called {twice!r}: rename one")
        self.schemas: tuple[Schema, ...] = tuple(tool.schema for tool in made)
        self._most, self._longest = most_calls, longest

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def instructions(self, text: str) -> str:
        """Instructions that the agent reads once: the text, and the tools below it."""
        return with_tools(text, self.schemas)

    def answer(self, action: str) -> Answered:
        """Run the calls that an action asks for, one after the other.

        An action that cannot be read runs nothing; a call that cannot be understood does not stop those after it.
        Raises ToolFault if a tool breaks, and nothing else whatever the action is.
        """
        try:
            requests = read_calls(action, self._most, self._longest)
        except BadCall as error:
            return Answered(f"Error: {error}", (), valid=False, readable=False)
        calls = tuple(self.call(request) for request in requests)
        return Answered("\n".join(call.text for call in calls), calls, all(call.valid for call in calls))

    def call(self, request: CallRequest) -> Call:
        """Run one call. Raises ToolFault."""
        name, arguments = request
        tool = self._tools.get(name)
        if tool is None:
            return Call(name, arguments, f"Error: {self._unknown(name)}", valid=False)
        try:
            result = tool.run(arguments)
            text = result if isinstance(result, str) else to_json(result, inf_nan_mode="null").decode()
        except BadArguments as error:
            return Call(name, arguments, f"Error: {error}", valid=False)
        except ToolError as error:
            return Call(name, arguments, f"Error: {error}", refused=True)
        except Exception as error:
            raise ToolFault(f"tool {name} raised {type(error).__name__}: {error}") from error
        return Call(name, arguments, text)

    def _unknown(self, name: str) -> str:
        close = difflib.get_close_matches(name[:80], self._tools, n=2)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        return f"no tool {name!r:.80}; {meant}There are {', '.join(self._tools) or 'none'}"
