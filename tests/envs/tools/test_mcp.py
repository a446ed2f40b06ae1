"""Tools of an MCP server: errors of the agent are text, a broken server never is."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.toolset import ToolFault, Toolset

if find_spec("mcp") is None:
    pytest.skip("no mcp: pip install 'manyturn[mcp]'", allow_module_level=True)

from manyturn.envs.tools.mcp import McpError, McpServer, Mounted

pytestmark = pytest.mark.versions

COMMAND = (sys.executable, str(Path(__file__).parent / "mcp_server.py"))


@pytest.fixture(params=["command", "url"])
def server(request: pytest.FixtureRequest) -> Iterator[McpServer]:
    if request.param == "command":
        yield McpServer(command=COMMAND)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*COMMAND, str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield McpServer(url=f"http://127.0.0.1:{port}/mcp", timeout=8)  # which a call of a dead server waits
    finally:
        process.kill()
        process.wait()


def test_a_mounted_server_answers_calls_and_its_end_is_a_fault(server: McpServer) -> None:
    with Mounted(server) as mounted:
        toolset = Toolset(mounted.tools)
        assert toolset.names == ("add", "leave")
        assert toolset.schemas[0]["function"]["description"] == "Add to the counter."
        assert toolset.answer(call_text("add", number=2)).text == "2"
        assert toolset.answer(call_text("add", number=3)).text == "5"
        refused = toolset.answer(call_text("add", number=-1))
        assert refused.valid and refused.calls[0].refused and "only forward" in refused.text
        for arguments in ({}, {"number": "x"}, {"number": 1.5}):
            assert not toolset.answer(call_text("add", **arguments)).valid
        for _ in range(2):  # while it goes, and when it is gone
            with pytest.raises(ToolFault, match="McpError"):
                toolset.answer(call_text("leave"))


def test_mounts_of_a_command_share_nothing() -> None:
    with Mounted(McpServer(command=COMMAND)) as one, Mounted(McpServer(command=COMMAND)) as two:
        assert Toolset(one.tools).answer(call_text("add", number=2)).text == "2"
        assert Toolset(two.tools).answer(call_text("add", number=1)).text == "1"


@pytest.mark.parametrize("where", [{"command": ("/no/such/program",)}, {"url": "http://127.0.0.1:9/mcp"}])
def test_a_server_that_is_not_there_is_an_error_that_names_it(where: dict) -> None:
    with pytest.raises(McpError, match=r"program|127"):
        Mounted(McpServer(**where, timeout=10))


@pytest.mark.parametrize(
    "where",
    [{}, {"command": ("a",), "url": "http://127.0.0.1/"}, {"url": "http://example.org/mcp"}, {"url": "file:///x"}],
)
def test_only_one_place_and_only_this_machine(where: dict) -> None:
    with pytest.raises(ConfigError, match="MCP server"):
        McpServer(**where)
