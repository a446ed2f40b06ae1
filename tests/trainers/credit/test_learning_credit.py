"""Every way to give credit learns."""

import pytest
from learning import learns, often

from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS


@pytest.mark.parametrize("name", often(ADVANTAGES.names()))
def test_every_advantage_learns(name, tmp_path):
    learns(name, {"credit": {"advantage": name if name != "stratified" else "grpo"}}, tmp_path / "run")


@pytest.mark.parametrize("name", often(MODULATIONS.names()))
def test_every_modulation_learns(name, tmp_path):
    learns(name, {"credit": {"advantage": "grpo", "modulation": [name]}}, tmp_path / "run")
