"""A run whose checkpoints will not fit on its disk does not begin; what they take is predicted rightly."""

import asyncio
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from short_runs import short_run

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.run.loop.disk_space import checkpoint_bytes
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"lora_rank": 2}, marks=pytest.mark.slow),
        {"value": {"body": "own"}},
    ],
    ids=["all weights", "adapters", "own critic"],
)
def test_a_checkpoint_takes_what_was_predicted(more: dict[str, Any], tmp_path: Path) -> None:
    wide = {"model": {"name": "tiny", "width": 128, "layers": 2, "heads": 2, "sample_tasks": 2}}
    learner = {key: value for key, value in more.items() if key != "value"}
    value = {"value": more["value"], "credit": {"advantage": {"name": "gae"}}} if "value" in more else {}
    config = short_run(**wide, **value, learner=learner, steps=1)

    async def predicted() -> int:
        async with open_run(config) as run:
            return sum(checkpoint_bytes(trainee.learner) for trainee in run.trainees)

    expected = asyncio.run(predicted())
    asyncio.run(train(config, tmp_path / "run"))
    newest = sorted((tmp_path / "run" / "checkpoints").glob("step_*"))[-1]
    assert sum(path.stat().st_size for path in newest.rglob("*.safetensors")) == pytest.approx(
        expected, rel=0.02, abs=20_000
    )  # files have headers


def test_a_run_whose_checkpoints_do_not_fit_is_refused_with_how_many_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = short_run(steps=1, keep_checkpoints=5)

    async def one() -> int:
        async with open_run(config) as run:
            return checkpoint_bytes(run.trainees[0].learner)

    size = asyncio.run(one())
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10 * size, 6 * size, 4 * size))
    with pytest.raises(ConfigError, match=r"do not fit into .*: set keep_checkpoints to (2|3), or name another --out"):
        asyncio.run(train(config, tmp_path / "run"))
    assert not (tmp_path / "run" / "checkpoints").exists()
    asyncio.run(train(short_run(steps=1, keep_checkpoints=2), tmp_path / "run"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10 * size, 10 * size, 0))
    with pytest.raises(ConfigError, match="make room, or name another --out"):
        asyncio.run(train(config, tmp_path / "another"))
