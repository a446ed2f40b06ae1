"""An estimate that touches the run, forgets a part of it, or is far from what the run then takes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from manyturn.api.training import configured
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.forecast.amounts import RunAmounts
from manyturn.trainers.run.forecast.bottleneck import bottleneck, warnings
from manyturn.trainers.run.forecast.early_estimate import EarlyEstimate
from manyturn.trainers.run.forecast.run_estimate import RunEstimate
from manyturn.trainers.run.forecast.trial import Cost, Stamped, Trial, trial_config

TASKS = {"train": 500, "validation": 40, "held_out": [100], "expert": True}
OPTIONS = [
    *("--model.width", 16, "--model.layers", 1, "--model.heads", 2, "--agent.max-context", 256, "--device", "cpu"),
    *("--rollout.tasks", 4, "--rollout.group", 4, "--steps", 3, "--evaluation.limit", 20),
]
WARMUP = [
    *("--warmup.episodes", 40, "--warmup.max-updates", 70, "--warmup.until-success", 0),
    *("--warmup.check-every", 35, "--warmup.check-episodes", 8),
]


def config(**options):
    return configured((), options, "manyturn/Maze-v0")


def trial_of(config, *, success=0.5, env_seconds=0.0):
    """A trial with a clock that is set: 60 updates of a second, steps that play 8 s and learn 4 s."""
    metrics = {"success": success, "turns": 10.0, "reply_tokens": 5.0, "env_turn_seconds": env_seconds, "cut": 0.0}
    step = {**metrics, "rollout_seconds": 8.0, "learn_seconds": 4.0, "draw_seconds": 6.0, "trained_tokens": 1000}
    lines = [
        ({"phase": "begin", "tasks": TASKS}, 3.0),
        ({"phase": "demonstrations", "rollout_seconds": 10.0}, 13.0),
        ({"phase": "imitation", "learn_seconds": 9.0}, 22.0),
        ({"phase": "warmup", "learn_seconds": 59.0, "rollout_seconds": 1.0, **metrics}, 82.0),
        ({"phase": "train", "step": 1, **step, "groups_without_signal": 0.9}, 95.0),
        ({"phase": "train", "step": 2, **step, "groups_without_signal": 0.9}, 107.5),
    ]
    summary = {"warmup": {"updates": 60}, "expert": {"turns": 4.0}, "peak_memory_mb": 500.0}
    return Trial(trial_config(config), [Stamped(line, Cost(at, at)) for line, at in lines], summary, Cost(110.0, 110.0))


def test_each_part_is_as_many_units_as_the_run_has():
    run = config(
        steps=50,
        warmup={"episodes": 1000, "max_updates": 300, "until_success": 0.0, "check_every": 100},
        evaluation={"limit": 200, "greedy": True, "every": 10},
    )
    estimate = RunEstimate.of(run, trial_of(run))
    amounts = estimate.amounts
    assert (amounts.demonstrations, amounts.updates, amounts.checks) == (500, 300, 3 * 40)
    assert (amounts.validations, amounts.evaluated, amounts.scripted) == (6 * 40, 200, 200)
    seconds = {name: cost.seconds for name, cost in estimate.parts.items()}
    # Half of the trial's episodes succeed, in 4 turns, so that the others take 16; success rises to three quarters.
    shorter = (0.625 * 4 + 0.375 * 16) / 10
    assert seconds["loading"] == 3.0 and seconds["demonstrations"] == pytest.approx(10.0 / 100 * 500)
    assert seconds["imitating"] == pytest.approx(300.0) and seconds["learning"] == pytest.approx(50 * 4.0 * shorter)
    assert seconds["playing"] == pytest.approx(50 * 8.0 * shorter) and seconds["rest"] == pytest.approx(50 * 0.5)
    assert estimate.total.seconds == pytest.approx(sum(seconds.values()))
    assert estimate.tokens[1] == round(1000 * 50 * shorter)


def test_a_warm_up_that_ends_at_a_success_is_taken_to_reach_it():
    run = config(warmup={"max_updates": 300, "until_success": 0.8})
    assert RunEstimate.of(run, trial_of(run)).lengths.success == 0.8
    whole = config(warmup={"max_updates": 60, "until_success": 0.8})  # the trial makes all of it
    assert RunEstimate.of(whole, trial_of(whole)).lengths.success == 0.5


def test_the_longest_part_decides_what_to_change():
    imitates = config(steps=1, warmup={"max_updates": 900})
    assert "warmup.max_updates" in bottleneck(imitates, RunEstimate.of(imitates, trial_of(imitates))).change
    slow = config(steps=500, warmup={"max_updates": 60})
    waiting = RunEstimate.of(slow, trial_of(slow, env_seconds=1.0))
    waiting = replace(waiting, line={**waiting.line, "draw_seconds": 0.5})
    assert "env.workers" in bottleneck(slow, waiting).change
    bare = config(steps=500, warmup={"episodes": 0})
    estimate = RunEstimate.of(bare, trial_of(bare, success=0.0))
    assert any("easier tasks" in remark.change for remark in warnings(bare, estimate))


def test_the_first_steps_of_a_run_say_how_long_it_takes():
    early = EarlyEstimate(config(steps=10, evaluation={"every": 5, "every_limit": 64}))
    assert "10 steps of 128 episodes" in early.amounts({"tasks": TASKS}).words
    assert early.take({"phase": "warmup", "seconds": 20.0}) is None
    line = {"phase": "train", "step": 1, "seconds": 42.0, "rollout_seconds": 8.0, "learn_seconds": 4.0}
    remaining = early.take(line)
    assert (
        remaining.left == pytest.approx(9 * 12.0 + 10.0 + 2 * 64 * 8.0 / 128) and remaining.total == 42 + remaining.left
    )
    assert early.take({**line, "step": 2}) is None and early.take({**line, "step": 3, "seconds": 66.0}) is not None


def test_only_a_stream_and_a_run_taken_over_need_no_demonstrations():
    assert RunAmounts.of(config(warmup={"episodes": "stream"}), TASKS).demonstrations == 0
    assert RunAmounts.of(config(warmup={"episodes": 0}), TASKS).updates == 0


def test_a_dry_run_prints_what_the_run_takes_and_leaves_nothing(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    doors = Path(__file__).parents[1] / "trainers" / "doors.py"
    dry = command("train", f"{doors}:Doors", *OPTIONS, "--warmup.episodes", 0, "--rollout.cut-share", 1, "--dry")
    assert dry.code == 0 and not list(tmp_path.iterdir()), dry.err
    for word in ("estimate: ", "playing", "learning", "memory: ", "tokens: ", "signal: ", "limited by "):
        assert word in dry.out
    assert "imitating" not in dry.out


@pytest.mark.deep
def test_a_dry_run_touches_nothing_and_the_training_has_the_same_bits(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = ["train", "manyturn/Maze-v0", *OPTIONS, *WARMUP]
    begun = command(*train, "--out", "before")
    assert begun.code == 0 and begun.out.index("to do: ") < begun.out.index("estimate: ") < begun.out.index(
        "step        2"
    )
    dry = command(*train, "--out", "after", "--dry")
    assert dry.code == 0 and sorted(path.name for path in tmp_path.iterdir()) == ["before"], dry.err
    for word in ("estimate: ", "imitating", "playing", "memory: ", "tokens: ", "signal: ", "limited by "):
        assert word in dry.out
    assert command(*train, "--out", "after").code == 0
    weights = [json.loads((tmp_path / run / "summary.json").read_text())["weights"] for run in ("before", "after")]
    assert weights[0] == weights[1]
    lines = [[(x["step"], x.get("loss")) for x in read_metrics(tmp_path / run)] for run in ("before", "after")]
    assert lines[0] == lines[1]
    assert "holds a run already" in command(*train, "--out", "after", "--dry").err
    planned = command("plan", "manyturn/Maze-v0", *OPTIONS, *WARMUP)
    amounts = re.compile(r"^to do: (.*?)[;\n]", re.MULTILINE)
    assert planned.code == 0 and amounts.findall(planned.out) == amounts.findall(dry.out), planned.err


def test_options_that_a_dry_run_cannot_have_are_refused(command, tmp_path):
    assert command("train", "--resume", tmp_path, "--dry").code == 2
    wrong = command("train", "manyturn/Maze-v0", "--rollout.group", 1, "--dry")
    assert wrong.code == 2 and "rollout.group" in wrong.err
    assert command("plan", "manyturn/Maze-v0", "--first", 2).code == 2
    assert command("plan", "manyturn/Maze-v0", "--turns", 2).code == 2
