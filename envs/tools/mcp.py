"""Tools of a server that speaks the Model Context Protocol, mounted in an environment; needs the extra ``mcp``.

The server is one that the user names: a command that talks over its standard streams, or an address on this machine.
Each mount is a connection of its own, and a command a process of its own, so that episodes share nothing.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent
from mcp_types import Tool as McpTool
from pydantic import Field, model_validator
from referencing import Registry

from manyturn.envs.contract.options.options import Options
from manyturn.envs.tools.tool import BadArguments, Tool, ToolError

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
T = TypeVar("T")


class McpError(RuntimeError):
    """The server cannot be reached, or broke. It is the environment's fault, never the agent's."""


class McpServer(Options):
    """Address of a server: exactly one of command and url."""

    command: tuple[str, ...] = ()
    """Program and arguments; no shell is involved."""
    env: dict[str, str] = {}
    """Environment variables of the command, besides the few that every program needs."""
    url: str | None = None
    """Address of a server on this machine, such as http://127.0.0.1:8000/mcp."""
    timeout: float = Field(default=30.0, gt=0)
    """Seconds that the start, or one call, may take."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("name an MCP server by its command or by its url, and not by both")
        if self.url and (urlsplit(self.url).scheme != "http" or urlsplit(self.url).hostname not in _LOOPBACK):
            raise ValueError(
                f"the url of an MCP server is one of this machine, http://127.0.0.1:PORT/..., not {self.url}"
            )
        return self


class Mounted:
    """A server's tools, for as long as they are needed. A context manager; raises McpError if there is no server.

    Args:
        server: where it is.

    Attributes:
        tools: to be put into a ``Toolset``, alone or with others. What the server calls an error is a ToolError,
            arguments that do not fit its schema are BadArguments, and a server that is silent or gone is an McpError.
    """

    def __init__(self, server: McpServer):
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._ready: Future[list[McpTool]] = Future()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self._thread.start()
        try:
            tools = self._ready.result(server.timeout)
        except Exception as error:
            self.close()
            problem = (
                "no answer" if isinstance(error, TimeoutError) else f"{type(_cause(error)).__name__}: {_cause(error)}"
            )
            raise McpError(f"MCP server {self._where}: {problem}") from error
        self.tools = tuple(self._tool(tool) for tool in tools)

    def close(self) -> None:
        """Leave the server, and end it if it is a command."""
        if self._thread.is_alive():
            with suppress(RuntimeError):  # the server is gone, and the thread has closed its loop and is about to end
                self._loop.call_soon_threadsafe(self._done.set)
            self._thread.join(self._server.timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _where(self) -> str:
        return self._server.url or " ".join(self._server.command)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._stay())
        except BaseException as error:  # reaches whoever waits for the start; afterwards calls find the loop closed
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._loop.close()

    async def _stay(self) -> None:
        """Hold the connection open; it has to be closed by the task that opened it."""
        server = self._server
        place: Any = server.url
        if server.command:
            program, *arguments = server.command
            place = StdioServerParameters(command=program, args=arguments, env=server.env)
        async with Client(place, read_timeout_seconds=server.timeout) as client:
            self._client, tools, cursor = client, list[McpTool](), None
            while True:
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if not cursor:
                    break
            self._ready.set_result(tools)
            await self._done.wait()

    def _tool(self, tool: McpTool) -> Tool:
        # A registry of its own: no schema may make this machine fetch another one.
        validator = validator_for(tool.input_schema)(tool.input_schema, registry=Registry())
        about = {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema}

        def run(arguments: dict[str, Any]) -> str:
            fault = best_match(validator.iter_errors(arguments))
            if fault is not None:
                raise BadArguments(f"{tool.name}: {fault.json_path.removeprefix('$.')!r:.80}: {fault.message:.200}")
            result = self._wait(self._client.call_tool(tool.name, arguments))
            if result.is_error:
                raise ToolError(_text(result))
            return _text(result)

        return Tool({"type": "function", "function": about}, run)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise McpError(f"MCP server {self._where} is gone")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(self._server.timeout)
        except Exception as error:
            raise McpError(f"MCP server {self._where}: {type(error).__name__}: {error}") from error


def _text(result: CallToolResult) -> str:
    """Readable part of a result; other content is named."""
    parts = [part.text if isinstance(part, TextContent) else f"({part.type} left out)" for part in result.content]
    return "\n".join(parts)


def _cause(error: BaseException) -> BaseException:
    """Errors inside nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
