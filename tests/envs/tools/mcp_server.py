"""A small MCP server with a state, for the tests: over its standard streams, or over HTTP on the port it is given."""

import os
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("counter")
held = {"count": 0}


@server.tool()
def add(number: int) -> int:
    """Add to the counter."""
    if number < 0:
        raise ToolError("only forward")
    held["count"] += number
    return held["count"]


@server.tool()
def leave() -> str:
    """End the server."""
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
