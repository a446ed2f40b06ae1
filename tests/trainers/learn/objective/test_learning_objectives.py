"""Every objective learns about as the clipped one does under the same settings, and is not the same."""

import pytest
from learning import learns, often

from manyturn.trainers.learn.objective.objective import OBJECTIVES


@pytest.mark.parametrize("name", often(sorted({*OBJECTIVES.names()} - {"clip"})))
def test_every_objective_learns_as_its_base_does(name, tmp_path_factory):
    learns(name, {"credit": {"advantage": "gigpo"}}, {"objective": {"name": name}}, tmp_path_factory)
