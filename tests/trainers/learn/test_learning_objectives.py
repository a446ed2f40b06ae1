"""Every objective learns."""

import pytest
from learning import learns, often

from manyturn.trainers.learn.objective import OBJECTIVES


@pytest.mark.parametrize("name", often(sorted({*OBJECTIVES.names()} - {"clip"})))
def test_every_objective_learns(name, tmp_path):
    learns(name, {"credit": {"advantage": "gigpo"}, "objective": {"name": name}}, tmp_path / "run")
