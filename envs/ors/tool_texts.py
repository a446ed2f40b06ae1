"""Tools and their results as text: instructions, the calls of an action, and what an agent reads."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from manyturn.envs.openenv.faults import BadAnswer, short
from manyturn.envs.tools.calls import CallRequest, is_call, read_calls
from manyturn.envs.tools.tool import Schema
from manyturn.envs.tools.tool_prompt import with_tools

_NO_PICTURE = "({kind}, which is left out: an observation is text)"
_RULE = "An action is a call of a tool: an object with its name and its arguments."


class TextTool(NamedTuple):
    """Tool that takes a reply without a call.

    Attributes:
        argument: its only one; None if it takes none.
    """

    name: str
    argument: str | None


class Tools:
    """Tools of a server.

    Args:
        listed: as the server lists them.
        terminal: its terminal tool, as it lists that.
        text_tool: tool for replies without a call; None for the terminal one, or the only one if that takes one text.

    Raises:
        ValueError: there is no such tool, or it does not take one text.
        BadAnswer: what is listed is none.
    """

    def __init__(self, listed: Any, terminal: Any, text_tool: str | None):
        self.schemas = schemas_of(listed)
        self.text_tool = _text_tool(self.schemas, terminal, text_tool)
        names = {schema["function"]["name"] for schema in self.schemas}
        self._takes_any_text = self.text_tool is not None and names <= {self.text_tool.name}

    @property
    def instructions(self) -> str:
        """Rule of an action, and the tools; empty where an action is any text."""
        return "" if self._takes_any_text else with_tools(_RULE, self.schemas)

    def calls(self, action: str) -> list[CallRequest]:
        """The calls that an action asks for. Raises BadCall."""
        if self.text_tool is None or (is_call(action) and not self._takes_any_text):
            return read_calls(action)
        name, argument = self.text_tool
        return [CallRequest(name, {} if argument is None else {argument: action})]


def schemas_of(listed: Any) -> tuple[Schema, ...]:
    """Schemas of tools that a server lists. Raises BadAnswer."""
    if not isinstance(listed, list):
        raise BadAnswer(f"the server lists its tools as {short(listed)}")
    schemas = []
    for tool in listed:
        if not (isinstance(tool, Mapping) and isinstance(tool.get("name"), str)):
            raise BadAnswer(f"the server lists a tool as {short(tool)}")
        shape = tool.get("input_schema")
        function = {
            "name": tool["name"],
            "description": str(tool.get("description") or ""),
            "parameters": dict(shape) if isinstance(shape, Mapping) else {"type": "object", "properties": {}},
        }
        schemas.append({"type": "function", "function": function})
    return tuple(schemas)


def text_of(blocks: Any) -> str:
    """Text of blocks. Raises BadAnswer."""
    if not isinstance(blocks, Sequence) or not all(isinstance(block, Mapping) for block in blocks):
        raise BadAnswer(f"the server says {short(blocks)}")
    return "\n".join(
        str(block.get("text", "")) if block.get("type") == "text" else _NO_PICTURE.format(kind=block.get("mimeType"))
        for block in blocks
    )


def _text_tool(schemas: Sequence[Schema], terminal: Any, name: str | None) -> TextTool | None:
    by_name = {schema["function"]["name"]: schema["function"]["parameters"] for schema in schemas}
    if name is not None:
        if name not in by_name:
            raise ValueError(f"text_tool = {name!r} is no tool of the server: it has {', '.join(by_name) or 'none'}")
        if (argument := _only_text(by_name[name])) is None:
            raise ValueError(f"text_tool = {name!r} takes other than one text: leave it out")
        return TextTool(name, argument)
    if isinstance(terminal, Mapping) and isinstance(terminal.get("name"), str):
        argument = terminal.get("arg")
        return TextTool(terminal["name"], argument if isinstance(argument, str) else None)
    if len(by_name) == 1:
        [(only, parameters)] = by_name.items()
        return None if (argument := _only_text(parameters)) is None else TextTool(only, argument)
    return None


def _only_text(parameters: Mapping[str, Any]) -> str | None:
    """Name of the only argument, if it is a text."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping) or len(properties) != 1:
        return None
    [(name, shape)] = properties.items()
    return name if isinstance(shape, Mapping) and shape.get("type") == "string" else None
