"""A warm-up that taught nothing is not passed over in silence: reinforcement would begin from noise."""

import asyncio
import os
import re
import shutil
import signal

import pytest
from learner_steps import episodes_of, equal, learner, weights
from short_runs import figures, short_run
from torch.optim.optimizer import register_optimizer_step_post_hook

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.record.run_folder import RunFolderError, read_metrics
from manyturn.trainers.record.stop_signal import Stopped
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.duration_forecast import measured

pytestmark = pytest.mark.versions

HOPELESS = """
import manyturn as mt

class Hopeless(mt.TextEnv):
    max_turns = 2

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(8)]

    def begin(self, task, rng):
        return "Say the word."

    def respond(self, action):
        return self.go_on("No.")

    def admissible(self):
        return ["tea", "milk"]
"""
# The word is shown or not; without it nobody but the expert can know what to say three times over.
HIDDEN = """
import random

import manyturn as mt

WORDS = ("tea", "milk", "salt", "rice", "corn", "oats", "rye", "figs")

class Hidden(mt.TextEnv):
    max_turns = 6
    shows = False

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(64)]

    def begin(self, task, rng):
        self.words = random.Random(task.id).choices(WORDS, k=6)
        return self.asks()

    def asks(self):
        return f"Say {self.expert()}." if self.shows else "Guess."

    def respond(self, action):
        if action not in WORDS:
            return self.invalid(self.asks())
        if action != self.words.pop(0):
            return self.fail("No.")
        return self.go_on(self.asks()) if self.words else self.succeed("Yes.")

    def admissible(self):
        return list(WORDS)

    def expert(self):
        return self.words[0]

class Shown(Hidden):
    shows = True

class Few(Shown):  # training shows half of the words, and validation asks for the other half

    def begin(self, task, rng):
        half = WORDS[:4] if task.params["split"] == "train" else WORDS[4:]
        self.words = random.Random(task.id).choices(half, k=6)
        return self.asks()

    def tasks(self, split):
        return super().tasks(split)[: 2 if split == "train" else None]
"""
TAUGHT = {"episodes": 12, "must_succeed": False, "batch": 4, "check_episodes": 2}
NO_WARMUP = {"episodes": 0}
SHORT_MAZE = {"id": "manyturn/Maze-v0", "args": {"max_turns": 1}}


def test_an_expert_that_never_arrives_is_told_with_its_mends(tmp_path):
    told = r"none of the 24 demonstrations by the expert with warmup\.noise = 0\.3 .*lower warmup\.noise"
    with pytest.raises(ConfigError, match=told) as refusal:
        asyncio.run(train(short_run(env=SHORT_MAZE), tmp_path / "run"))
    assert "\n" not in str(refusal.value) and "set warmup.episodes = 0" in str(refusal.value)
    asyncio.run(train(short_run(env=SHORT_MAZE, warmup=NO_WARMUP, steps=1), tmp_path / "mended"))
    assert [line["step"] for line in read_metrics(tmp_path / "mended") if line["phase"] == "train"] == [1]


def test_chance_that_never_arrives_asks_for_an_expert(tmp_path):
    (tmp_path / "hopeless.py").write_text(HOPELESS)
    env = {"id": f"{tmp_path / 'hopeless.py'}:Hopeless"}
    with pytest.raises(ConfigError, match=r"none of the 8 .* by a random policy .* give the environment an expert\(\)"):
        asyncio.run(train(short_run(env=env), tmp_path / "run"))


def words(folder, name, **warmup):
    """A run without steps that says words; returns its summary and notices."""
    (folder / "words.py").write_text(HIDDEN)
    told = {"episodes": 64, "noise": 0.0, "batch": 8, "lr": 1e-2, "check_every": 20, "check_episodes": 16, **warmup}
    lines = []
    config = short_run(
        env={"id": f"{folder}/words.py:{name}"},
        warmup=told,
        sampling={"max_tokens": 4},
        steps=0,
        evaluation={"limit": 4},
    )
    summary = asyncio.run(train(config, folder / "run", report=lines.append))
    return summary, [line["notice"] for line in lines if line["phase"] == "notice"]


def failed(folder, name, **warmup):
    with pytest.raises(LearningFailed) as stopped:
        words(folder, name, **warmup)
    told = str(stopped.value)
    assert "\n" not in told and "without a success on 16 validation tasks (invalid " in told
    assert "With --warmup.must-succeed false the run goes on all the same" in told
    measured = ["warmup"] * (warmup["max_updates"] // 20 or 1)
    assert [line["phase"] for line in read_metrics(folder / "run")] == ["demonstrations", "imitation", *measured]
    return told


def test_an_expert_that_knows_what_is_not_shown_is_named_as_the_cause(tmp_path):
    told = failed(tmp_path, "Hidden", max_updates=120)
    assert re.search(
        r"replies are valid and the loss stands at [\d.]+ since update \d+: what was demonstrated cann", told
    )


def test_a_learning_rate_that_is_too_high_is_named_as_the_cause(tmp_path):
    assert re.search(
        r"the loss was [\d.]+ when it began and rose: lower warmup\.lr = 3",
        failed(tmp_path, "Shown", max_updates=40, lr=3.0),
    )


def test_demonstrations_that_are_learnt_by_heart_are_named_as_the_cause_though_the_loss_still_falls(tmp_path):
    """What is left of it is nothing to learn: more updates would go on for hours."""
    options = {"episodes": 2, "lr": 3e-2, "max_updates": 200}
    _, notices = words(tmp_path, "Few", must_succeed=False, **options)
    early = next(
        notice for notice in notices if re.search(r"stands at success 0\.00 since update (20|40|60|80)\b", notice)
    )
    (tmp_path / "again").mkdir()
    for message in (early, failed(tmp_path / "again", "Few", **options)):
        assert "warmup.max_updates" not in message and "raise warmup.episodes = 2" in message


def test_a_warmup_that_is_too_short_is_named_as_the_cause(tmp_path):
    told = failed(tmp_path, "Shown", max_updates=2, lr=1e-4)
    assert re.search(r"replies (do not end, as '.*', where demonstrated ones have at most 2 tokens|mean nothing)", told)
    assert "the loss still falls: raise warmup.max_updates = 2." in told


@pytest.mark.parametrize("options", [{"must_succeed": False}, {"until_success": 0.0}])
def test_a_run_may_go_on_without_a_success(tmp_path, options):
    summary, notices = words(tmp_path, "Shown", max_updates=2, lr=1e-4, **options)
    assert summary["warmup"].pop("cpu_seconds") > 0
    assert summary["warmup"] == {"demonstrations": 64, "updates": 2, "success": 0.0}
    assert [notice for notice in notices if "the warm-up ended" in notice] == (
        [
            "the warm-up ended after 2 updates with success 0.00, below warmup.until_success = 0.5: the run goes on "
            "from there"
        ]
        if "must_succeed" in options
        else []
    )


def test_a_success_below_what_was_asked_for_is_a_line_of_the_summary_too(tmp_path):
    summary, notices = words(tmp_path, "Shown", max_updates=100, until_success=1.0, check_every=100)
    assert 0 < summary["warmup"]["success"] < 1
    [told] = [notice for notice in notices if "below warmup.until_success = 1" in notice]
    assert told in summary["notices"]


def test_what_a_warm_up_costs_is_known_from_its_first_update_on(tmp_path):
    config = short_run(steps=1, evaluation={"limit": 2}, warmup={**TAUGHT, "max_updates": 4, "check_every": 2})
    asyncio.run(train(config, tmp_path / "run"))
    shown, first, *measured, step = read_metrics(tmp_path / "run")
    assert [shown["phase"], first["phase"]] == ["demonstrations", "imitation"]
    assert shown["demonstrations"] > 0 and {"rollout_seconds", "rollout_cpu_seconds"} <= shown.keys()
    assert first["updates"] == 1 and first["loss"] > 0 and first["trained_tokens"] > 0
    assert [line["updates"] for line in measured] == [2, 4]
    for line in measured:
        assert line["learn_cpu_seconds"] > 0 < line["rollout_cpu_seconds"] and line["trained_tokens"] > 0
    assert measured[1]["trained_tokens"] > first["trained_tokens"], "of both updates since the line before"
    assert step["learn_cpu_seconds"] > 0 < step["rollout_cpu_seconds"]
    assert 0 < step["read_seconds"] + step["draw_seconds"] <= step["rollout_seconds"] + 0.01
    assert step["read_seconds"] > 0 < step["draw_seconds"]


def test_a_signal_ends_a_warm_up_at_once(tmp_path):
    """It used to be heard after 30 s, for which updates went on that nobody would keep."""
    updates = list[object]()

    def report(line):
        if line["phase"] == "imitation":
            updates.clear()
            os.kill(os.getpid(), signal.SIGINT)

    many = {**TAUGHT, "max_updates": 100_000, "check_every": 100_000}
    counting = register_optimizer_step_post_hook(lambda optimizer, *_: updates.append(optimizer))
    try:
        with pytest.raises(Stopped, match="SIGINT: what was not finished is left"):
            asyncio.run(train(short_run(warmup=many), tmp_path / "run", report=report))
    finally:
        counting.remove()
    assert len(updates) < 10
    assert not list((tmp_path / "run/checkpoints").iterdir())


def test_an_update_that_is_to_stop_ends_after_its_micro_batch_and_changes_nothing():
    made, passes = learner(micro_tokens=64), 0
    before = weights(made)

    def stop():
        nonlocal passes
        passes += 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.imitate(episodes_of(), 1e-2, between=stop)
    assert passes == 1 and equal(before, weights(made)) and made.updates == 0


# ---- killed in the warm-up


@pytest.mark.deep
@pytest.mark.parametrize("drawn", [{"episodes": 24}, {"episodes": "stream", "labels": "expert", "policy_share": 0.5}])
def test_a_warm_up_goes_on_from_its_last_measurement_to_the_same_bits(tmp_path, drawn):
    calm, killed = tmp_path / "calm", tmp_path / "killed"

    def copy_at_the_second_measurement(line):
        if line["phase"] == "warmup" and line["updates"] == 24:  # 12 updates are on disk, 24 are not yet saved
            shutil.copytree(calm, killed, ignore=shutil.ignore_patterns(".*.writing"))

    warmup = {**drawn, "must_succeed": False, "until_success": 1.0, "batch": 4, "check_every": 12}
    config = short_run(warmup={**warmup, "max_updates": 36, "check_episodes": 4}, steps=2)
    asyncio.run(train(config, calm, report=copy_at_the_second_measurement))
    assert not (killed / "summary.json").exists()
    with pytest.raises(RunFolderError, match=r"is in its warm-up, with [\d,]+ demonstrations and 0\.\d CPU minutes so"):
        measured(killed)
    asyncio.run(train(None, killed, resume=True))
    assert figures(killed) == figures(calm)
    updates = [line["updates"] for line in read_metrics(killed) if line["phase"] in ("imitation", "warmup")]
    assert updates == [1, 12, 24, 36]
    lines = [line for line in read_metrics(calm) if line["phase"] == "warmup"]
    assert lines[0]["warmup_left_seconds"] > 0 < lines[1]["warmup_left_seconds"] > lines[2]["warmup_left_seconds"] == 0
