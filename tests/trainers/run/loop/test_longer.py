"""A finished run that cannot be continued, or whose continuation is not the longer run that it claims to be."""

import asyncio
import json
import shutil

import pytest
from short_runs import figures, short_run

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.record.run_folder import read_config, read_metrics
from manyturn.trainers.run.loop.loop import train

LEVEL = {"minibatch": 3, "lr_end": 1.0}
UNTIMED = {"learner": LEVEL, "steps": 2, "evaluation": {"limit": 3}, "checkpoint_every": 3}


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A finished run of two steps, of a learning rate that knows of no end."""
    folder = tmp_path_factory.mktemp("longer") / "short"
    asyncio.run(train(short_run(**UNTIMED), folder))
    return folder


@pytest.mark.deep
def test_a_run_made_longer_is_the_longer_run_to_the_bit(short, tmp_path):
    whole = asyncio.run(train(short_run(**{**UNTIMED, "steps": 4}), tmp_path / "whole"))
    run = shutil.copytree(short, tmp_path / "run")
    notices = []
    longer = asyncio.run(train(None, run, resume=True, steps=4, report=notices.append))
    assert longer["weights"] == whole["weights"] and longer["after"] == whole["after"]
    assert figures(run)["metrics"] == figures(tmp_path / "whole")["metrics"]
    assert longer["config_changes"] == [{"step": 2, "entries": {"steps": [2, 4]}}]
    assert read_config(run).steps == 4 and not [line for line in notices if "lr_end" in line.get("notice", "")]
    assert json.loads((run / "summary-step_000002.json").read_text())["steps"] == 2
    again = asyncio.run(train(None, run, resume=True))
    assert again["weights"] == whole["weights"] and again["config_changes"] == longer["config_changes"]


def test_a_schedule_that_depends_on_the_length_is_named(tmp_path):
    asyncio.run(train(short_run(steps=2, evaluation={"limit": 3}), tmp_path / "run"))
    told = []
    summary = asyncio.run(train(None, tmp_path / "run", resume=True, steps=4, report=told.append))
    [notice] = [line["notice"] for line in told if "lr_end" in line.get("notice", "")]
    assert "learner.lr_end = 0.1" in notice and "step 2 learnt at 0.55" in notice and "step 3 goes on at 0.55" in notice
    assert notice in summary["notices"]
    rates = [line["lr"] for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert rates == pytest.approx([5e-4 * share for share in (1, 0.55, 0.55, 0.325)])


def test_a_run_is_not_made_shorter_than_it_is(short, tmp_path):
    run = shutil.copytree(short, tmp_path / "run")
    with pytest.raises(ConfigError, match="has done 2 steps already: give --steps 2 or more"):
        asyncio.run(train(None, run, resume=True, steps=1))
    assert read_config(run).steps == 2 and (run / "summary.json").is_file()


def test_more_steps_do_not_let_another_edit_through(short, tmp_path):
    run = shutil.copytree(short, tmp_path / "run")
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("\nseed = 0", "\nseed = 1"))
    with pytest.raises(ConfigError, match="seed was 0 and is 1"):
        asyncio.run(train(None, run, resume=True, steps=4))
    assert read_config(run).steps == 2
