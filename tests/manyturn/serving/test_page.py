"""docs/serving.md and docs/serving-mcp.md: a client that readers copy, and kinds of failures that it does not list."""

import asyncio
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from manyturn.serving.error_replies import KINDS

pytestmark = pytest.mark.versions

DOCS = Path(__file__).parents[3] / "docs"


def test_every_kind_of_failure_is_listed():
    page = (DOCS / "serving.md").read_text(encoding="utf-8")
    [section] = re.findall(r"^## Failures are no results\n(.*?)^## ", page, re.M | re.S)
    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == list(KINDS)


@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("mcp", "uvicorn", "wsproto")),
    reason="no server: pip install 'manyturn[serve]'",
)
def test_the_client_on_the_page_plays(tools, tmp_path):
    page = (DOCS / "serving-mcp.md").read_text(encoding="utf-8")
    [code] = re.findall(r"<!-- run by \S+ -->\n```python\n(.*?from mcp import.*?)```", page, re.S)

    async def play():
        async with tools.serving("manyturn/Desk-v0", "mcp") as (url, held):
            (tmp_path / "client.py").write_text(code.replace("http://127.0.0.1:8123/mcp", url), encoding="utf-8")
            client = await asyncio.create_subprocess_exec(
                sys.executable, str(tmp_path / "client.py"), stdout=asyncio.subprocess.PIPE
            )
            said, _ = await client.communicate()
            lines = said.decode().splitlines()
            assert client.returncode == 0 and lines[-1].endswith(" 0.0 False") and held.open == 0

    asyncio.run(play())
