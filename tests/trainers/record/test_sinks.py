"""Sinks hand on what the run has recorded, under names that people know (watching.md), and do not touch it."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from needs import absent
from short_runs import short_run

from manyturn.trainers.recipe.config import to_toml
from manyturn.trainers.record.run_folder import read_config, read_metrics
from manyturn.trainers.record.trackers.episode_sample import turn_table, watched
from manyturn.trainers.record.trackers.metric_names import named

pytestmark = pytest.mark.versions

DOORS = (Path(__file__).parents[1] / "doors.py").read_text(encoding="utf-8")
SMALL = [
    *("--model.width", 16, "--model.layers", 1, "--model.heads", 2, "--sampling.max-tokens", 8, "--device", "cpu"),
    *("--env.wrappers", '[{name = "turn_cost", cost = 0.25}]'),
    *("--warmup.episodes", 0, "--rollout.tasks", 4, "--rollout.group", 2, "--evaluation.limit", 2, "--steps", 2),
]
BROKEN = """
class Settings:
    def __init__(self, **options):
        pass

class Run:
    summary = {}
    def define_metric(self, *names, **options):
        pass
    def log(self, values):
        raise OSError("no space left,\\nsays the tracker")
    def finish(self):
        pass

def init(**options):
    return Run()
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    (folder / "doors.py").write_text(DOORS, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def calm(world, forked):
    """A run that nobody watches."""
    ended = forked("-m", "manyturn", "train", "doors.py:Doors", *SMALL, "--out", "calm", cwd=world)
    assert ended.returncode == 0, ended.stderr
    return world / "calm"


def weights(run: Path) -> str:
    return json.loads((run / "summary.json").read_text())["weights"]


@pytest.mark.deep
def test_a_tracker_that_fails_is_named_once_and_the_run_comes_to_the_same_weights(world, calm, forked):
    (world / "broken").mkdir()
    (world / "broken" / "wandb.py").write_text(BROKEN)
    script = (
        "import sys; sys.path.insert(0, 'broken'); from manyturn.cli.app import main; sys.argv[0] = 'manyturn'; main()"
    )
    (world / "watched.py").write_text(script)
    words = ["train", "doors.py:Doors", *SMALL, "--loggers", '["wandb"]', "--out", "watched"]
    ended = forked("watched.py", *words, cwd=world)
    assert ended.returncode == 0, ended.stderr
    told = [line for line in ended.stderr.splitlines() if "logger" in line]
    wanted = "the logger 'wandb' raised OSError: no space left, says the tracker; the run goes on without it"
    assert told == [f"manyturn: {wanted}"]
    assert weights(world / "watched") == weights(calm)


@pytest.mark.parametrize("name", ["wandb", "trackio", "tensorboard"])
def test_a_tracker_that_is_not_installed_is_missed_before_the_run_and_not_by_its_readers(
    name, tmp_path, monkeypatch, command
):
    (tmp_path / "doors.py").write_text(DOORS, encoding="utf-8")
    monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "run"
    ended = command("train", f"{tmp_path}/doors.py:Doors", *SMALL, "--loggers", f'["{name}"]', "--out", out)
    assert ended.code == 2 and not out.exists()
    assert ended.err.strip().endswith(f"loggers names {name}, which is not installed: pip install 'manyturn[{name}]'")
    (tmp_path / "config.toml").write_text(to_toml(short_run(loggers=[name])), encoding="utf-8")
    assert read_config(tmp_path).loggers[0].name == name


def test_figures_have_our_names_and_those_that_people_look_for(calm):
    [line] = [line for line in read_metrics(calm) if line["phase"] == "train" and line["step"] == 2]
    found = named(line)
    assert found["train/return"] == found["train/reward"] == line["return"]
    assert found["train/rewards/outcome"] == line["parts/outcome"]
    assert found["train/learning_rate"] == line["lr"] and found["train/kl"] == line["approx_kl"]
    assert found["timing_s/step"] == line["rollout_seconds"] + line["learn_seconds"]
    assert {f"train/{key}" for key, value in line.items() if isinstance(value, int | float)} - found.keys() == {
        "train/step",
        "train/seconds",
    }
    assert named({"phase": "validation", "step": 2, "success": None, "return": 1.0}) == {
        "eval/return": 1.0,
        "eval/reward": 1.0,
    }


def test_a_table_of_turns_holds_whole_episodes_of_different_tasks_with_their_credit(calm):
    episodes = watched(calm, 2, 3)
    assert len({one.episode["task"] for one in episodes}) == 3
    columns, rows = turn_table(2, episodes)
    assert len(rows) == sum(one.episode["turns"] for one in episodes)
    assert {"observation", "reply", "reward", "advantage", "ending"} <= set(columns)
    assert all(len(row) == len(columns) for row in rows) and watched(calm, 2, 3) == episodes
    assert len(watched(calm, 2, 99)) == 8


@pytest.mark.slow
def test_the_real_trackers_hold_figures_and_turns_of_a_run_that_is_continued(world, calm, forked, tmp_path):
    if missing := [name for name in ("wandb", "trackio", "tensorboard") if find_spec(name) is None]:
        absent("TRACKERS", f"{missing[0]} is missing: make interop runs its tests in an environment of their own")
    loggers = '["wandb", "trackio", {name = "tensorboard", turns_every = 1}]'
    words = ["-m", "manyturn", "train", "doors.py:Doors", *SMALL, "--loggers", loggers, "--checkpoint-every", 1]
    env = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio"), "WANDB_MODE": "online", "HF_HUB_OFFLINE": "1"}
    ended = forked(*words, "--out", "real", cwd=world, env=env)
    assert ended.returncode == 0, ended.stderr
    run, [last] = world / "real", [line for line in read_metrics(world / "real") if line["phase"] == "train"][1:]
    assert "logger" not in ended.stderr and weights(run) == weights(calm)
    holds_events(run, last, 2)
    holds_offline_run(run, last)
    shutil.rmtree(run / "checkpoints" / "step_000002")
    ended = forked("-m", "manyturn", "train", "--resume", "real", cwd=world, env=env)
    assert ended.returncode == 0 and "logger" not in ended.stderr, ended.stderr
    [last] = [line for line in read_metrics(run) if line["phase"] == "train"][1:]
    holds_events(run, last, 2)
    assert len(list((run / "wandb").glob("offline-run-*"))) == 2
    script = (
        "import json; from trackio.sqlite_storage import SQLiteStorage as S\n"
        "print(json.dumps({run: S.get_logs('manyturn', run) for run in S.get_runs('manyturn')}, default=str))"
    )
    told = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    runs = json.loads(told.stdout.splitlines()[-1])
    assert runs.keys() == {"real", "real, from step 1"}
    for lines in runs.values():
        found = {line["step"]: line for line in lines if "train/reward" in line}
        assert found.keys() == {1, 2} and found[2]["train/reward"] == last["return"]
        assert any("turns" in line for line in lines)


def holds_events(run: Path, line: dict, steps: int) -> None:
    """TensorBoard's own reader finds the figures once, and what was said."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard" / run.name))
    events.Reload()
    values = events.Scalars("train/reward")
    assert [one.step for one in values] == list(range(1, steps + 1))
    assert values[-1].value == pytest.approx(line["return"])
    said = events.Tensors("turns/0/text_summary")
    episode = watched(run, steps, 4)[0]
    assert episode.turns[0]["reply"] in said[-1].tensor_proto.string_val[0].decode() and len(said) == steps


def holds_offline_run(run: Path, line: dict) -> None:
    """Nothing was sent: all is in a folder that ``wandb sync`` would send."""
    [folder] = (run / "wandb").glob("offline-run-*")
    [file] = folder.glob("*.wandb")
    assert b"train/reward" in file.read_bytes() and b"timing_s/step" in file.read_bytes()
    [table] = (folder / "files" / "media" / "table").glob("turns_*.table.json")
    plain = json.loads(table.read_text())
    assert "observation" in plain["columns"] and len(plain["data"]) > 4
