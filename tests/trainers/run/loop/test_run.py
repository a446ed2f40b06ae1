"""A run gives the same bits whatever happens to it."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from short_runs import short_run

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.record.checkpoint import newest_checkpoint
from manyturn.trainers.record.metrics import METRICS
from manyturn.trainers.record.run_folder import RunFolder, RunFolderError, read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A finished run and its summary."""
    folder = tmp_path_factory.mktemp("run") / "calm"
    return folder, asyncio.run(train(short_run(), folder))


def test_one_seed_gives_one_result(calm, tmp_path):
    again = asyncio.run(train(short_run(), tmp_path / "again"))
    assert again["weights"] == calm[1]["weights"]
    assert asyncio.run(train(short_run(seed=1), tmp_path / "other"))["weights"] != calm[1]["weights"]


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_worker_processes_change_nothing(calm, tmp_path, workers):
    summary = asyncio.run(train(short_run(workers=workers), tmp_path / "run"))
    assert summary["weights"] == calm[1]["weights"]


def test_every_metric_is_defined_and_every_step_is_logged(calm):
    lines = read_metrics(calm[0])
    assert {key for line in lines for key in line} <= set(METRICS)
    assert [line["step"] for line in lines if line["phase"] == "train"] == [1, 2, 3, 4, 5]
    used = {key for line in lines for key in line}
    assert {"success", "advantage_std", "policy_loss", "reference_kl", "engine_gap", "singleton_anchors"} <= used


def test_engine_and_learner_agree_on_every_token_of_a_run(calm):
    """float32 on a CPU: what the engine drew with and what the learner computes are the same policy."""
    assert max(line["engine_gap"] for line in read_metrics(calm[0]) if line["phase"] == "train") < 1e-4


def test_a_folder_has_one_writer(calm):
    with RunFolder(calm[0], resume=True), pytest.raises(RunFolderError, match="another process"):
        RunFolder(calm[0], resume=True).__enter__()


def test_a_run_is_not_written_over(calm):
    with pytest.raises(RunFolderError, match="--resume"):
        asyncio.run(train(short_run(), calm[0]))


def test_training_tasks_are_remembered_for_the_held_out_guard(calm):
    newest, _ = newest_checkpoint(calm[0] / "checkpoints")
    state = json.loads((newest / "state.json").read_text())
    assert len(state["seen"]) >= 24 * 0.3 and all(len(content) == 32 for content in state["seen"])


def test_training_tasks_are_never_reported_as_held_out(tmp_path):
    from manyturn.agents.evaluation.evaluate import NotHeldOut

    config = short_run()
    told = config.evaluation.model_copy(update={"split": "train", "limit": 50})
    doors = Path(__file__).parents[2] / "doors.py"
    env = config.env.model_copy(update={"id": f"{doors}:Doors"})
    with pytest.raises(NotHeldOut):
        asyncio.run(train(config.model_copy(update={"evaluation": told, "env": env}), tmp_path / "run"))


@pytest.mark.parametrize("gone", [False, True], ids=["broken", "gone"])
def test_a_run_without_an_intact_checkpoint_does_not_start_again(calm, tmp_path, gone):
    """Resuming must not throw away what a person could still restore."""
    from manyturn.trainers.record.checkpoint import CheckpointError

    run = tmp_path / "run"
    shutil.copytree(calm[0], run)
    if gone:
        shutil.rmtree(run / "checkpoints")
    for manifest in run.glob("checkpoints/*/manifest.json"):
        manifest.write_text("{")
    lines = read_metrics(run)
    error, words = (RunFolderError, "no checkpoint") if gone else (CheckpointError, "restore")
    with pytest.raises(error, match=words):
        asyncio.run(train(None, run, resume=True))
    assert read_metrics(run) == lines and list((run / "turns").iterdir())


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path):
    config = short_run(env={"id": "manyturn/Nowhere-v0"})
    with pytest.raises(ValueError, match="Nowhere"):
        asyncio.run(train(config, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def _edited(run: Path, was: str, now: str) -> None:
    text = (run / "config.toml").read_text()
    assert text.count(was) == 1
    (run / "config.toml").write_text(text.replace(was, now))


def test_a_run_does_not_go_on_with_an_edited_configuration(calm, tmp_path):
    run = shutil.copytree(calm[0], tmp_path / "run")
    _edited(run, "\nsteps = 5", "\nsteps = 6")
    with pytest.raises(ConfigError, match=r"steps was 5 and is 6; take the edit back, or accept it .* --accept-config"):
        asyncio.run(train(None, run, resume=True))
    assert json.loads((run / "summary.json").read_text())["steps"] == 5


def test_an_edit_that_would_start_other_code_is_refused_before_it_does(calm, tmp_path):
    run, file = shutil.copytree(calm[0], tmp_path / "run"), tmp_path / "other.py"
    file.write_text("import os\nos._exit(0)\n")
    _edited(run, 'id = "manyturn/Maze-v0"', f'id = "{file}:Other"')
    with pytest.raises(ConfigError, match=r"env\.id was 'manyturn/Maze-v0' and is"):
        asyncio.run(train(None, run, resume=True))


def test_an_accepted_edit_stands_in_the_summary_and_is_asked_about_once(calm, tmp_path):
    run = shutil.copytree(calm[0], tmp_path / "run")
    _edited(run, "\nsteps = 5", "\nsteps  =  5 # five")
    assert asyncio.run(train(None, run, resume=True))["config_changes"] == []
    _edited(run, "\nsteps  =  5 # five", "\nsteps = 6")
    summary = asyncio.run(train(None, run, resume=True, accept=("config",)))
    accepted = [{"step": 5, "entries": {"steps": [5, 6]}}]
    assert summary["steps"] == 6 and json.loads(json.dumps(summary["config_changes"])) == accepted
    assert asyncio.run(train(None, run, resume=True))["config_changes"] == accepted


def test_an_accepted_edit_after_which_no_step_follows_is_kept_and_costs_no_evaluation(calm, tmp_path):
    run = shutil.copytree(calm[0], tmp_path / "run")
    limit = json.loads((run / "summary.json").read_text())["panel"]["n_tasks"]
    for old, new in ((limit, limit - 1), (limit - 1, limit - 2)):
        _edited(run, f"\nlimit = {old}\n", f"\nlimit = {new}\n")
        assert asyncio.run(train(None, run, resume=True, accept=("config",)))["panel"]["n_tasks"] == new
        assert asyncio.run(train(None, run, resume=True))["panel"]["n_tasks"] == new
    kept = [json.loads((path / "summary.json").read_text())["n_tasks"] for path in sorted(run.glob("evaluation*"))]
    assert kept == [limit - 2, limit, limit - 1]


def test_lost_lines_of_metrics_are_noticed_when_a_run_goes_on(calm, tmp_path, capfd):
    run = shutil.copytree(calm[0], tmp_path / "run")
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["phase"] != "train" or json.loads(line)["step"] not in (2, 4)]
    (run / "metrics.jsonl").write_text("".join(kept))
    asyncio.run(train(None, run, resume=True))
    assert "metrics.jsonl has lost its lines of 2 steps, the first 2" in capfd.readouterr().err
