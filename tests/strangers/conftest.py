"""What a newcomer has at hand: the environment that README prints, and a server that answers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import ChatServer, chat_server

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def doors(tmp_path: Path) -> str:
    """``doors.py`` word for word, as ``FILE.py:Class``."""
    [block] = re.findall(r"```python\n(.*?class Doors\(mt\.TextEnv\).*?)```", README.read_text("utf-8"), re.DOTALL)
    (tmp_path / "doors.py").write_text(block)
    return f"{tmp_path}/doors.py:Doors"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    pytest.importorskip("httpx", reason="pip install 'manyturn[openai]'")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    with chat_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server
