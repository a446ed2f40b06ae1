"""Tools that an agent calls: typed Python functions, and the text of calls.

What an environment of your own needs is here; docs/tools.md builds one with it::

    from manyturn.envs.tools import ToolError, Toolset, call_text
"""

from manyturn.envs.tools.calls import call_text, calls_text
from manyturn.envs.tools.tool import Tool, ToolError
from manyturn.envs.tools.toolset import Answered, Call, ToolFault, Toolset

__all__ = ["Answered", "Call", "Tool", "ToolError", "ToolFault", "Toolset", "call_text", "calls_text"]
