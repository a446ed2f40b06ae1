"""What a newcomer has at hand: the environment that README prints, and a model that knows it."""

import re
from pathlib import Path

import pytest
from doors_model import DoorsModel
from needs_endpoint import Server, reading

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def doors(tmp_path: Path) -> str:
    """``doors.py`` word for word, as ``FILE.py:Class``."""
    [block] = re.findall(r"```python\n([^`]*?class Doors\(mt\.TextEnv\).*?)```", README.read_text("utf-8"), re.DOTALL)
    (tmp_path / "doors.py").write_text(block)
    return f"{tmp_path}/doors.py:Doors"


@pytest.fixture
def model(endpoint_server: Server) -> DoorsModel:
    """Behind the endpoint to which the environment variables lead."""
    model = DoorsModel()
    endpoint_server.script = [reading(model)]
    return model
