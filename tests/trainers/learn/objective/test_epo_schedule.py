"""A run that sees only the start of EPO's schedule, or a schedule that nobody can see."""

import asyncio
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from short_runs import short_run

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.objective.epo import EpoConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.objective.regularizer_state import ObjectiveMemory
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

BRIEF = {"warmup": {"episodes": 0}, "rollout": {"cut_share": 1.0}, "evaluation": {"limit": 1}, "checkpoint_every": 9}


def weights(form: str, steps: int) -> list[float]:
    """The weight of the penalty in each step of a run, as its metrics show it."""
    memory, found = ObjectiveMemory(ClipConfig(epo=EpoConfig(form=form)).over(steps)), []
    for _ in range(steps):
        now = memory.begin(np.array([1.0]), np.array([0]))
        found.append(memory.figures(now)["epo_weight"])
    return found


@pytest.mark.parametrize(("form", "first", "last"), [("paper", 2.0, 1 + math.exp(-1)), ("released", 1.0, 0.4)])
@given(steps=st.integers(4, 400))
@settings(max_examples=40, deadline=None)
def test_a_run_of_any_length_goes_through_the_schedule_from_its_start_to_its_end(form, first, last, steps):
    found = weights(form, steps)
    assert found[0] == first and found[-1] <= last
    assert all(later <= sooner for sooner, later in itertools.pairwise(found))


def test_the_schedule_of_150_steps_is_that_of_the_authors():
    assert weights("released", 150)[75:77] == [pytest.approx(0.827, abs=1e-3), pytest.approx(0.769, abs=1e-3)]
    assert weights("paper", 150)[75] == pytest.approx(1 + math.exp(-1))


def test_a_schedule_that_the_run_does_not_reach_the_end_of_is_refused():
    short_run(objective={"name": "clip", "epo": {"horizon": 5}})
    with pytest.raises(ConfigError, match=r"epo\.horizon = 60 is a schedule of 60 steps, .* run of 5 .* leave it out"):
        short_run(objective={"name": "clip", "epo": {"horizon": 60}})
    with pytest.raises(ValueError, match="has the length of a run: give its steps"):
        ObjectiveMemory(ClipConfig(epo=EpoConfig()))


@pytest.mark.deep
def test_the_metrics_show_the_weight_and_a_longer_run_says_that_its_schedule_is_another(tmp_path):
    config = short_run(**BRIEF, objective={"name": "clip", "epo": {}}, steps=2)
    asyncio.run(train(config, tmp_path / "run"))
    told = []
    asyncio.run(train(None, tmp_path / "run", resume=True, steps=4, report=told.append))
    found = [line["epo_weight"] for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert found == pytest.approx([2.0, 1 + math.exp(-1), 1 + math.exp(-1), 1 + math.exp(-1.5)])
    [notice] = [line["notice"] for line in told if "EPO" in line.get("notice", "")]
    assert "was that of 2 steps and is that of 4" in notice
