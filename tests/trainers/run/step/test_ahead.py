"""In asynchronous order: tokens of which nobody knows the weights, episodes that are too old, lost or doubled."""

import asyncio
import json
import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nodes import wait_for
from safetensors.torch import load_file
from short_runs import ended, episode_keys, finish, left_behind, short_run, start
from transformers import AutoModelForCausalLM

from manyturn.agents.play.error_limit import TooManyErrors
from manyturn.agents.records.episode_log import JournalError
from manyturn.agents.records.episode_rows import read_turns
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.trajectories.token_files import read_ledgers
from manyturn.report.run import run_head
from manyturn.trainers.play.order.schedule import EpisodePlace, Past
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.run_folder import RunFolder, read_metrics, step_ledgers
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.async_episode_log import Journals
from manyturn.trainers.run.step.asynchronous import Ahead

ERRANDS = f"{Path(__file__).parents[4] / 'benchmarks/scale/latency_world.py'}:Errands"
HELD = f"{Path(__file__).with_name('held_errands.py')}:Held"
COUNT = 9  # episodes of a step


def ahead(staleness: int = 2, seconds: float = 0.01, **changes: Any) -> RunConfig:
    """A run whose turns take longer than its updates, so that new weights come in the middle of episodes."""
    world = {"env": {"id": ERRANDS, "args": {"seconds": seconds, "tail": 0.5}}, "warmup": {"episodes": 0}}
    order = {"kind": "asynchronous", "staleness": staleness} if staleness else {}
    kept = {"checkpoint_every": 1, "keep_checkpoints": 99, "keep_tokens": True, "evaluation": {"limit": 2}}
    learner = {"minibatch": 3, "lr": 1e-2}
    return short_run(**{**world, **kept, "order": order, "learner": learner, **changes})


def lines_of(run: Path) -> dict[int, dict[str, Any]]:
    return {line["step"]: line for line in read_metrics(run) if line["phase"] == "train"}


def steps_of_versions(run: Path) -> dict[int, int]:
    """Policy version -> steps that were done when it came about."""
    return {0: 0} | {line["version"]: step for step, line in lines_of(run).items()}


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Path:
    """A run of six steps."""
    path = tmp_path_factory.mktemp("ahead") / "run"
    asyncio.run(train(ahead(steps=6), path))
    return path


@pytest.mark.deep
def test_no_turn_is_older_than_allowed_and_episodes_span_versions(played):
    steps, found, mixed = steps_of_versions(played), lines_of(played), 0
    assert len(found) == 6
    for step, line in found.items():
        rows = [row for row in read_turns(played / f"turns/step_{step:06d}.parquet")]
        versions: dict[tuple[str, int], list[int]] = {}
        for row in rows:
            versions.setdefault((row["task"], row["member"]), []).append(row["policy_version"])
        assert len(versions) == COUNT
        assert all(own == sorted(own) for own in versions.values())
        first = [step - 1 - steps[own[0]] for own in versions.values()]
        assert max(first) <= line["staleness_max"] <= 2 and sum(first) / COUNT <= line["staleness"] + 1e-9
        share = sum(len(set(own)) > 1 for own in versions.values()) / COUNT
        assert line["mixed_versions"] == pytest.approx(share)
        mixed += share > 0
    assert mixed, "weights reach the engine while episodes run"
    assert max(line["staleness_max"] for line in found.values()) == 2


def test_the_report_draws_staleness_queues_idle_shares_and_the_slowest_environment(played):
    drawn = {curve["title"]: [series["name"] for series in curve["series"]] for curve in run_head(played).curves}
    assert drawn["Staleness"] == ["mean of an episode", "of the oldest"]
    assert drawn["Idle"] == ["learner", "places for episodes"]
    assert drawn["Queues"] == ["being played", "waiting to be learnt from"]
    assert drawn["Answers of the environment"] == ["mean of a turn", "the slowest"]
    [slowest] = [table for table in run_head(played).tables if table["title"].startswith("Slowest")]
    seconds = [row[2] for row in slowest["rows"]]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] == pytest.approx(max(line["slowest_env_seconds"] for line in lines_of(played).values()), rel=0.01)
    assert all(task.startswith("train/") and not host for task, host, *_ in slowest["rows"])


@pytest.mark.deep
@pytest.mark.parametrize("consume", ["any", "drop"])
def test_groups_that_overtake_others_are_whole_in_time_and_the_cost_is_told(tmp_path, consume):
    """One task is slow: ``any`` waits for it in the end, ``drop`` learns from others."""
    choosing = {"agent": {"only_admissible": True}, "sampling": {"max_tokens": 12}}  # no reply is cut: all act
    world = {"env": {"id": HELD, "args": {"folder": str(tmp_path)}, "workers": 6}, **choosing}

    def report(line: dict[str, Any]) -> None:
        if line["phase"] == "begin":  # training tasks begin after it
            (tmp_path / "begin").touch()
        elif line["phase"] == "train" and line["step"] == {"any": 1, "drop": 6}[consume]:
            (tmp_path / "end").touch()

    order = {"kind": "asynchronous", "staleness": 1, "consume": consume}
    rollout = {"tasks": 3, "group": 3, "concurrency": 9}
    asyncio.run(train(ahead(steps=8, order=order, rollout=rollout, **world), tmp_path / "run", report=report))
    lines, keys = lines_of(tmp_path / "run"), episode_keys(tmp_path / "run")
    assert len(lines) == 8 and len(keys) == len(set(keys)) == 8 * COUNT
    groups = Counter(key[:2] for key in keys)
    assert all(count % 3 == 0 for count in groups.values()), "members of a group are learnt from together"
    assert max(line["staleness_max"] for line in lines.values()) <= 1
    dropped = [line["dropped"] for line in lines.values()]
    if consume == "any":
        assert not any(dropped) and {stage for stage, *_ in keys} == {f"train/{step}" for step in range(1, 9)}
        assert lines[8]["length_bias"] == 0, "all have been learnt from"
    else:
        assert max(dropped) > 0 and all(abs(line["length_bias"]) < 1 for line in lines.values())
    assert not left_behind(tmp_path / "run")


@pytest.mark.deep
def test_log_probabilities_are_those_of_the_weights_that_the_ledger_names(played):
    steps, worst, seen = steps_of_versions(played), 0.0, set[int]()
    models = dict[int, Any]()
    for step in range(1, 7):
        for ledger in read_ledgers(step_ledgers(played, step)).values():
            for turn, span in enumerate(ledger.spans):
                if span.version not in models:
                    folder = played / f"checkpoints/step_{steps[span.version]:06d}/model"
                    models[span.version] = AutoModelForCausalLM.from_pretrained(folder)
                ids = ledger.branches[span.branch].ids[: span.end]
                with torch.no_grad():
                    logits = models[span.version](input_ids=torch.tensor([ids])).logits[0].float()
                drawn = torch.log_softmax(logits, -1)[range(span.start - 1, span.end - 1), ids[span.start :]]
                worst = max(worst, float(np.abs(drawn.numpy() - ledger.reply_logprobs(turn)).max()))
                seen.add(span.version)
    assert len(seen) > 2 and worst < 1e-4


def test_a_step_plays_the_tasks_that_it_plays_in_synchronous_order(played, tmp_path):
    asyncio.run(train(ahead(staleness=0, seconds=0.0, steps=6), tmp_path / "calm"))
    assert sorted(episode_keys(played)) == sorted(episode_keys(tmp_path / "calm"))
    assert "staleness" not in lines_of(tmp_path / "calm")[1]


def test_the_ratio_is_over_what_the_drawing_weights_thought_of_a_token(played):
    """The first update of a step of older episodes is off policy; in synchronous order it is not."""
    moved = [line["engine_gap"] for line in lines_of(played).values()]
    assert moved[0] < 1e-4 < min(moved[2:])


def killed_after(path: Path, work: Any, lines: int) -> None:
    """Begin a run and kill it once it has done some steps."""
    child = start(work)
    wait_for(lambda: len(_whole_lines(path)) >= lines, child)
    os.kill(child, signal.SIGKILL)
    assert ended(child) == -signal.SIGKILL, "it was over before the kill"


def _whole_lines(path: Path) -> list[str]:
    file = path / "metrics.jsonl"
    return [line for line in file.read_text().splitlines() if '"train"' in line] if file.is_file() else []


LEARNT = ("loss", "grad_norm", "approx_kl", "advantage_std", "version", "return", "turns", "drawn_tokens")


def work_on(folder: Path, consume: str = "drawn", checkpoint_every: int = 100) -> None:
    resume = (folder / "config.toml").is_file()
    few = {"tasks": 3, "group": 3, "concurrency": 5}  # places, for which held-out tasks wait too
    held_out = {"limit": 2, "every": 2, "every_limit": 8}
    order = {"kind": "asynchronous", "staleness": 2, "consume": consume}
    plan = {"steps": 8, "checkpoint_every": checkpoint_every, "rollout": few, "evaluation": held_out, "order": order}
    config = None if resume else ahead(seconds=0.01 if consume == "drawn" else 0.02, **plan)
    asyncio.run(train(config, folder, resume=resume))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("consume", "every"),
    [
        ("drawn", 100),
        pytest.param("any", 100, marks=pytest.mark.slow),
        ("any", 2),
        pytest.param("drop", 100, marks=pytest.mark.slow),
        ("drop", 2),
    ],
)
def test_a_killed_run_learns_again_from_the_same_episodes_and_loses_none(tmp_path, consume, every):
    """All steps that it had done since its last checkpoint, which may be the first one, come again to the same bits."""
    path, work = tmp_path / "run", partial(work_on, consume=consume, checkpoint_every=every)
    killed_after(path, partial(work, path), 3)
    before = {line["step"]: line for line in map(json.loads, _whole_lines(path))}
    there = sum(file.read_text().count("\n") - 1 for file in (path / "journal").glob("*_00.jsonl"))
    finish(path, work)
    after = lines_of(path)
    assert len(before) >= 3 and (there >= 3 * COUNT or every < 100)
    for step, line in before.items():
        assert {name: line[name] for name in LEARNT} == {name: after[step][name] for name in LEARNT}
    found = episode_keys(path)
    assert len(found) == len(set(found)) == 8 * COUNT, "one was lost or doubled"
    if consume != "drop":
        assert {stage for stage, *_ in found} == {f"train/{step}" for step in range(1, 9)}, "all that were drawn"
    assert max(line["staleness_max"] for line in after.values()) <= 2
    assert not left_behind(path)


@pytest.mark.deep
def test_what_was_drawn_with_weights_that_do_not_come_again_is_played_again(tmp_path):
    """The journal of step 1 has lost a line: from step 1 on the run comes to other weights than before."""

    async def some_steps() -> dict[EpisodePlace, tuple[int, int]]:
        with RunFolder(tmp_path / "run", resume=False) as folder:
            async with open_run(ahead(steps=8)) as run:
                run.only.learner.begin_reinforcement()
                async with Ahead(run, State(), folder) as order:
                    for _ in range(5):  # the last of them learns from nothing that older weights have drawn
                        await order.step()
            whole = Journals(folder, Past(), COUNT, 1).ended
            file = folder.journal_file(1)
            file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
            left = Journals(folder, Past(), COUNT, 1).ended
            assert Journals(folder, Past(), COUNT, 1).ended == left, "it is not taken back"
            others = [(run.train[0], EpisodeKey(0, "train/2", run.train[0].id, 99))] * COUNT
            with pytest.raises(JournalError, match=r"is to be played.*Remove the folder"):
                Journals(folder, Past(), COUNT, 1).episodes(2, others)
            return {place: whole[place] for place in whole if place not in left}

    lost = asyncio.run(some_steps())
    assert sum(place.step == 1 for place in lost) == 1, "that whose line is gone"
    later = [ended for place, (_, ended) in lost.items() if place.step > 1]
    assert later and min(later) > 0


@pytest.mark.deep
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.4, 0.8])
def test_a_step_that_is_cancelled_is_done_or_has_changed_nothing(tmp_path, delay):
    async def cancelled() -> None:
        state = State()
        with RunFolder(tmp_path / "run", resume=False) as folder:
            async with open_run(ahead()) as run:
                run.only.learner.begin_reinforcement()
                before = run.only.weights
                async with Ahead(run, state, folder) as order:
                    step = asyncio.create_task(order.step())
                    await asyncio.sleep(delay)
                    step.cancel()
                    await asyncio.wait((step,))
                    changed = run.only.weights != before
                    assert changed == (state.step == 1) == (not step.cancelled())
                    assert run.only.engine.version == run.only.learner.updates
                    await order.step()

    asyncio.run(cancelled())


def test_episodes_that_all_break_stop_the_run_and_do_not_hang_it(tmp_path):
    doors = tmp_path / "broken.py"
    doors.write_text(
        "from manyturn.envs.classics.maze import Maze\n\n\n"
        "class Broken(Maze):\n"
        "    def respond(self, action):\n"
        "        raise RuntimeError('the floor gives way')\n"
    )
    config = ahead(
        env={"id": f"{doors}:Broken"}, evaluation={"limit": 1}, rollout={"tasks": 3, "group": 3, "attempts": 1}
    )
    with pytest.raises(TooManyErrors, match="the floor gives way"):
        asyncio.run(train(config, tmp_path / "run"))


@pytest.mark.deep
def test_several_policies_draw_with_their_own_weights_and_a_curriculum_hears_of_their_tasks(tmp_path):
    duet = Path(__file__).parents[2] / "duet.py"
    config = ahead(
        env={"id": f"{duet}:Duet"},
        roles={"caller": "truth", "liar": "lies"},
        agent={"only_admissible": True},  # so that no reply is cut, and both have turns
        curriculum="band",
        credit={"advantage": "grpo"},
        objective={"name": "clip"},
        keep_tokens=False,
        steps=4,
    )
    asyncio.run(train(config, tmp_path / "run"))
    line = lines_of(tmp_path / "run")[4]
    assert line["truth/version"] > 0 and line["lies/version"] > 0 and line["staleness_max"] <= 2
    state = json.loads((tmp_path / "run/checkpoints/step_000004/state.json").read_text())
    assert state["drawn"] == [] and len(state["memory"]["curriculum band"]) >= 3


@pytest.mark.deep
def test_adapters_reach_the_engine_that_has_a_copy_of_them(tmp_path):
    asyncio.run(train(ahead(learner={"lora_rank": 4, "minibatch": 3, "lr": 1e-2}, steps=4), tmp_path / "run"))
    lines = lines_of(tmp_path / "run")
    assert lines[1]["engine_gap"] < 1e-4, "the copy draws as the learner's model does"
    weights = [
        load_file(next((tmp_path / f"run/checkpoints/step_{n:06d}/model").glob("*.safetensors"))) for n in (0, 4)
    ]
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
