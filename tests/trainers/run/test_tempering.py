"""Members that are drawn hotter or colder move the policy's entropy to either side of what it would be."""

import asyncio

import numpy as np
import pytest
from learning import WORLD

from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

SHORT = {"evaluation": {"limit": 1, "repeats": 1}, "learner": {"old_logprobs": "learner"}}


def steps_of(folder, target: float, steps: int, resume_at: int | None = None) -> list[dict]:
    """The lines of a run's steps; it ends and goes on at one of them."""
    tempering = {"rollout": {"tempering": {"target": target, "members": 3, "high": 1.6, "low": 0.6}}}
    config = configure(stacked([WORLD, load_recipe("aepo-arbitrary"), tempering, SHORT]), {"steps": steps})
    if resume_at is not None:
        asyncio.run(train(config.model_copy(update={"steps": resume_at}), folder))
        asyncio.run(train(config, folder, resume=True))
    else:
        asyncio.run(train(config, folder))
    return [line for line in read_metrics(folder) if line["phase"] == "train"]


@pytest.mark.deep
def test_the_temperature_follows_the_entropy_of_the_step_before(tmp_path):
    lines = steps_of(tmp_path / "run", 0.3, 4)
    entropies = [line["drawn_entropy"] for line in lines]
    expected = [1.6, *(1.6 if entropy <= 0.3 else 0.6 for entropy in entropies[:-1])]
    assert [line["tempered_temperature"] for line in lines] == expected
    assert any(line["tempered_learnt"] > 0 for line in lines)


@pytest.mark.slow
def test_the_entropy_ends_higher_with_the_higher_target(tmp_path):
    low, high = (steps_of(tmp_path / str(target), target, 24)[-8:] for target in (0.05, 0.6))
    ends = [np.mean([line["drawn_entropy"] for line in lines]) for lines in (low, high)]
    assert ends[1] > 1.5 * ends[0], ends
