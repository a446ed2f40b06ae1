"""Tool descriptions for an agent: a block at the end of the instructions.

Each tool's schema is a line of JSON between ``<tools>`` and ``</tools>``, as in the Hermes and Qwen conventions. Every
agent can read it, and a chat template with a tool format of its own gets the schemas taken out again.
"""

import json
from collections.abc import Sequence

from manyturn.envs.tools.tool import Schema

_HEAD = "\n\nYou may call these tools:\n<tools>\n"
_TAIL = "\n</tools>"


def told(instructions: str, tools: Sequence[Schema]) -> str:
    """Instructions with the tools below them."""
    if not tools:
        return instructions
    return f"{instructions}{_HEAD}{chr(10).join(json.dumps(tool, ensure_ascii=False) for tool in tools)}{_TAIL}"


def taken_out(text: str) -> tuple[str, tuple[Schema, ...]]:
    """The inverse of ``told``: what is left of a text, and the tools; a text without a whole block stays as it is.

    >>> tool = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}
    >>> taken_out(told("Be kind.", [tool]) + " Answer briefly.") == ("Be kind. Answer briefly.", (tool,))
    True
    """
    before, head, rest = text.partition(_HEAD)
    lines, closed, after = rest.partition(_TAIL)
    if not (head and closed):
        return text, ()
    try:
        return before + after, tuple(json.loads(line) for line in lines.split("\n"))
    except json.JSONDecodeError:
        return text, ()
