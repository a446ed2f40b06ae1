"""Every way to give credit learns about as GRPO does under the same settings, and is not the same as GRPO."""

import pytest
from learning import learns, often

from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS


@pytest.mark.deep
@pytest.mark.parametrize("name", often(sorted({*ADVANTAGES.names()} - {"grpo"})))
def test_every_advantage_learns_as_its_base_does(name, tmp_path_factory):
    learns(name, {}, {"credit": {"advantage": name}}, tmp_path_factory)


@pytest.mark.parametrize("name", often(MODULATIONS.names()))
def test_every_modulation_learns_as_its_base_does(name, tmp_path_factory):
    learns(name, {}, {"credit": {"modulation": [name]}}, tmp_path_factory)
