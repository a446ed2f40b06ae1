"""A run of seconds."""

import asyncio
from pathlib import Path

import pytest

DOORS = Path(__file__).parents[1] / "trainers" / "doors.py"


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory) -> Path:
    """The folder of a run that has learnt from a few of Doors' training tasks; each turn costs 0.25."""
    from manyturn.trainers.recipe.config import configure
    from manyturn.trainers.run.loop import train

    folder = tmp_path_factory.mktemp("tiny")
    (folder / "doors.py").write_text(DOORS.read_text())
    env = {"id": f"{folder}/doors.py:Doors", "wrappers": [{"name": "turn_cost", "cost": 0.25}]}
    sizes = {
        "model": {"width": 16, "layers": 1, "heads": 2},
        "agent": {"max_context": 256},
        "sampling": {"max_tokens": 8},
        "warmup": {"episodes": 0},
        "rollout": {"tasks": 16, "group": 2},
        "evaluation": {"limit": 2},
        "steps": 1,
        "device": "cpu",
    }
    asyncio.run(train(configure({}, {"env": env}, sizes), folder / "run"))
    return folder / "run"
