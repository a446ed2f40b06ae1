"""Successes that are lost, replayed where a group has its own, taken from held-out tasks, or lost by a kill."""

import asyncio
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from short_runs import figures, resumed_to_the_bit, short_run

import manyturn as mt
from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.records.episode_buffer import FOLDER, BufferDamaged, EpisodeBuffer
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.agents.tokens.ledger import Ledger
from manyturn.api.trajectory_formats import trajectories_of
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.play.rollout.replay import SuccessReplay, with_replays
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

DOORS = f"{Path(__file__).parents[2] / 'doors.py'}:Doors"
WORLD: dict[str, Any] = {
    "env": {"id": DOORS},
    "warmup": {"episodes": 0},
    "rollout": {"tasks": 3, "group": 3, "cut_share": 1.0},
    "credit": {"advantage": "grpo"},
    "agent": {"max_context": 512, "format": "free_text", "only_admissible": True},
    "sampling": {"max_tokens": 8},
    "evaluation": {"limit": 2, "every": 0},
    "steps": 4,
}


def replay_run(replay: dict[str, Any] | None, **changes: Any):
    return short_run(**stacked([WORLD, {"rollout": {"replay": replay}} if replay is not None else {}, changes]))


def steps_of(run: Path) -> list[dict[str, Any]]:
    return [line for line in read_metrics(run) if line["phase"] == "train"]


@pytest.fixture(scope="module")
def expert(tmp_path_factory):
    """An evaluation of the expert on all training tasks, and one on held-out tasks."""
    folder = tmp_path_factory.mktemp("expert")
    for split in ("train", "test"):
        mt.evaluate("expert", DOORS, split=split, limit=1000, out=folder / split)
    return folder


@pytest.fixture(scope="module")
def calm(expert, tmp_path_factory):
    """A run that replays the expert's episodes, which a copy that was killed has continued to the same bits."""
    config = replay_run({"source": str(expert / "train"), "members": 2, "per_task": 2})
    return resumed_to_the_bit(config, tmp_path_factory.mktemp("killed"))


# ---- the choice


def episode(task: Task, key, success: bool | None) -> Episode:
    ledger = Ledger()
    ledger.record([1, 2], [7, 8], [-0.5, -float(key.stage[6:])], key.member)
    turn = TurnRecord("o", "r", "a", True, True, 0.0, {}, "x", None, (1.5, 0.5))
    ending = Ending.ENV_ERROR if success is None else Ending.COMPLETED
    return Episode(key, task, turns=[turn], ending=ending, success=success, ledger=ledger)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_a_group_without_a_success_gets_stored_ones_and_no_other_group_does(
    tmp_path_factory, group, members, per, luck
):
    members = min(members, group - 1)
    folder, config = tmp_path_factory.mktemp("b"), SuccessReplay(members=members, per_task=per, size=3 * per)
    tasks, rows, stored = [Task(n, "train", {"n": n}) for n in "abc"], [], dict[str, list[Any]]()
    for step in range(1, 6):
        plan, rng = plan_groups(tasks, group, 0, f"train/{step}"), generator("luck", luck, step)
        kinds = rng.choice([True, False, False, None], size=len(plan)).tolist()
        played = [episode(task, key, kind) for (task, key), kind in zip(plan, kinds, strict=True)]
        got = with_replays(played, [True] * len(played), EpisodeBuffer(folder, rows), config, (0, step))
        again = with_replays(played, [True] * len(played), EpisodeBuffer(folder, rows), config, (0, step))
        assert repr(got) == repr(again), "what a killed run does again is the same"
        assert list(got.episodes[: len(played)]) == played
        for task in tasks:
            own = [n for n, one in enumerate(played) if one.task is task and one.success is not None]
            new = [one for one in got.episodes[len(played) :] if one.task.id == task.id]
            gone = [n for n in own if not got.is_kept[n]]
            silent = bool(own) and not any(played[n].success for n in own)
            count = min(members, len(stored.get(task.id, [])), len(own) - 1) if silent else 0
            assert len(new) == len(gone) == count and gone == own[:count]
            for one in new:
                assert one.success and one.replayed >= 1 and one.key.member >= group
                source = next(e for e in stored[task.id] if repr(e.ledger) == repr(one.ledger))
                assert one.replayed == step - int(source.key.stage.partition("/")[2])
            keys = [one.key for one in got.episodes]
            assert len(set(keys)) == len(keys)
            stored.setdefault(task.id, []).extend(one for one in played if one.task is task and one.success)
            stored[task.id] = stored[task.id][-per:]
        rows = got.stored
        assert len(rows) <= config.size and max(map([r[1] for r in rows].count, "abc")) <= per


# ---- a run


def test_a_step_in_which_every_attempt_fails_learns_from_trajectories_of_an_expert(expert, tmp_path):
    for name, replay in (("with", {"source": str(expert / "train")}), ("without", None)):
        rollout = {"tasks": 1, "group": 2}
        asyncio.run(train(replay_run(replay, rollout=rollout, steps=1), tmp_path / name))
    assert [steps_of(tmp_path / name)[0].get("replayed") for name in ("with", "without")] == [1.0, None]
    assert [steps_of(tmp_path / name)[0]["success"] for name in ("with", "without")] == [0.0, 0.0]
    weights = [figures(tmp_path / name)["summary"]["weights"] for name in ("with", "without")]
    assert weights[0] != weights[1]


@pytest.mark.deep
def test_a_run_replays_what_a_source_holds_and_shows_it_as_replayed(calm):
    lines = steps_of(calm)
    assert all(line["replayed"] == line["silent_groups"] for line in lines), "the source has every training task"
    assert any(line["replayed"] > 0 for line in lines)
    for line in lines:
        turns = read_turns(calm / "turns" / f"step_{line['step']:06d}.parquet")
        episodes = read_episodes(calm / "episodes" / f"step_{line['step']:06d}.parquet")
        old = {
            (row["task"], row["member"])
            for row in turns
            if row["replayed"] is not None and not math.isnan(row["replayed"])
        }
        assert {member >= 3 for _, member in old} <= {True}
        own = [row for row in episodes if (row["task"], row["member"]) not in old]
        assert len(own) == 9 and np.mean([row["success"] for row in own]) == pytest.approx(line["success"])
        assert all(row["success"] for row in episodes if (row["task"], row["member"]) in old)
        untaught = {
            (row["task"], row["member"]) for row in turns if row["advantage"] is None or math.isnan(row["advantage"])
        }
        assert len(untaught) == len(old), "as many attempts make way"
    assert lines[-1]["played_episodes"] == 9 * len(lines)
    assert any("replayed" in turn for one in trajectories_of(calm, print) for turn in one.turns)


@pytest.mark.deep
def test_files_of_the_buffer_are_those_that_checkpoints_name(calm):
    named = set()
    for file in calm.glob("checkpoints/step_*/state.json"):
        rows = json.loads(file.read_text())["stored"]
        buffer = EpisodeBuffer(calm, rows)
        buffer.check()
        assert max(map([row[1] for row in rows].count, {row[1] for row in rows})) <= 2
        named |= {entry.file for entry in buffer.stored}
    assert {file.name for file in (calm / FOLDER).iterdir()} == named


@pytest.mark.deep
def test_a_damaged_file_stops_a_resumed_run(calm, tmp_path):
    shutil.copytree(calm, tmp_path / "run")
    file = next((tmp_path / "run" / FOLDER).iterdir())
    file.write_text(file.read_text().replace("train", "trai n", 1))
    with pytest.raises(BufferDamaged, match="restore it"):
        asyncio.run(train(None, tmp_path / "run", resume=True, steps=6))


@pytest.mark.deep
def test_an_edit_of_a_resumed_run_names_no_source_and_another_agent_empties_the_buffer(calm, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(calm, run)
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(re.sub(r'source = ".*"', f'source = "{tmp_path}"', text))
    with pytest.raises(ConfigError, match=r"rollout\.replay\.source .* leave it as it was"):
        asyncio.run(train(None, run, resume=True, steps=5, accept=("config",)))
    (run / "config.toml").write_text(text.replace("max_context = 512", "max_context = 500"))
    asyncio.run(train(None, run, resume=True, steps=5, accept=("config",)))
    assert steps_of(run)[-1]["replayed"] == 0.0 < steps_of(run)[-1]["silent_groups"]


@pytest.mark.deep
def test_replay_is_what_moves_the_weights_where_every_attempt_fails(calm, expert, tmp_path):
    """Asynchronous order too; a buffer of another run serves as a source and keeps its log-probabilities."""
    changes = {"objective": {"correction": {}}, "order": {"kind": "asynchronous"}}
    config = replay_run({"source": str(calm)}, **changes, steps=2)
    asyncio.run(train(config, tmp_path / "other"))
    assert any(line["replayed"] > 0 and "replay_ratio" in line for line in steps_of(tmp_path / "other"))
    theirs = EpisodeBuffer(calm, json.loads(max(calm.glob("checkpoints/step_*/state.json")).read_text())["stored"])
    state = json.loads((tmp_path / "other/checkpoints/step_000000/state.json").read_text())
    assert [row[2] for row in state["stored"]] == [entry.sha256 for entry in theirs.stored]
    asyncio.run(train(replay_run(None, **changes, steps=2), tmp_path / "none"))
    assert figures(tmp_path / "other")["summary"]["weights"] != figures(tmp_path / "none")["summary"]["weights"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("split", "changes", "fix"),
    [
        ("test", {}, "name others as rollout.replay.source"),
        ("none", {}, "rollout.replay.source: .*: name a file or a folder"),
        (
            "calm",
            {"agent": {"format": "tagged"}},
            "is of another agent: agent.format.* leave rollout.replay.source out",
        ),
        (
            "calm",
            {"env": {"id": "manyturn/Maze-v0"}},
            "another environment .*: name another run as rollout.replay.source",
        ),
    ],
)
def test_a_source_of_held_out_tasks_another_agent_or_another_environment_is_refused(
    calm, expert, tmp_path, split, changes, fix
):
    source = calm if split == "calm" else expert / split
    with pytest.raises(ConfigError, match=fix):
        asyncio.run(train(replay_run({"source": str(source)}, **changes), tmp_path / "run"))


@pytest.mark.deep
def test_imitation_changes_no_credit_and_moves_the_weights_after_it(expert, tmp_path):
    source = {"source": str(expert / "train")}
    for name, replay in (("none", None), ("imitation", {**source, "use": "imitation"})):
        asyncio.run(train(replay_run(replay, steps=1, evaluation={"every": 0}), tmp_path / name))
    [line], [plain] = (steps_of(tmp_path / name) for name in ("imitation", "none"))
    assert line["imitated"] == round(3 * line["silent_groups"]) > 0 and line["imitation_loss"] > 0
    assert line["version"] == plain["version"] + 1
    same = ("success", "return", "advantage_std", "grad_norm", "policy_loss", "groups_without_signal")
    assert {key: line[key] for key in same} == {key: plain[key] for key in same}
    weights = [figures(tmp_path / name)["summary"]["weights"] for name in ("imitation", "none")]
    assert weights[0] != weights[1]


# ---- what it is for


PATHS = f"{Path(__file__).parents[2] / 'paths.py'}:Paths"
RARE: dict[str, Any] = {
    "env": {"id": PATHS},
    "model": {"name": "tiny", "width": 32, "layers": 2, "heads": 2},
    "warmup": {"episodes": 0},
    "agent": {"format": "free_text", "only_admissible": True, "max_context": 256},
    "sampling": {"max_tokens": 8},
    "rollout": {"tasks": 8, "group": 8},
    "learner": {"lr": 2e-3, "minibatch": 16},
    "evaluation": {"limit": 50},
    "steps": 15,
    "checkpoint_every": 100,
    "device": "cpu",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "leaves"), [("grpo", False), ("gigpo", False), ("arpo-replay", True)])
def test_where_a_success_is_hardly_ever_met_only_replay_leaves_zero(name, leaves, tmp_path):
    """One walk in 6^5 is right at random, so that no group of the others teaches; the buffer begins with an expert."""
    recipe = stacked([RARE, load_recipe(name)])
    if leaves:
        mt.evaluate("expert", PATHS, split="train", limit=12, out=tmp_path / "expert")
        recipe = stacked([recipe, {"rollout": {"replay": {"source": str(tmp_path / "expert")}}}])
    summary = asyncio.run(train(configure(recipe), tmp_path / "run"))
    assert summary["before"]["success"] == 0.0
    if leaves:
        assert summary["difference"]["ci_low"] > 0.1
    else:
        assert summary["after"]["success"] == 0.0
        assert np.mean([line["groups_without_signal"] for line in steps_of(tmp_path / "run")]) > 0.9
