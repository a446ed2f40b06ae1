"""Exploration before the first step that is left out, or lost in a kill; a policy that it moves."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from short_runs import ended, figures, left_behind, short_run, start

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.record.checkpoint import read_tensors
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

CHANCES = {"id": f"{Path(__file__).parents[2] / 'chances.py'}:Chances"}
EPISODES, STEPS, A_STEP = 36, 2, 9
EXPLORING = {"body": "own", "trust": "full", "exploration": {"episodes": EPISODES, "passes": 3, "hidden": 8}}


def config(progress: dict[str, Any] = EXPLORING, **changes: Any) -> RunConfig:
    return short_run(
        **{
            "env": CHANCES,
            "agent": {"only_admissible": True},  # no reply is cut, so that all act
            "sampling": {"max_tokens": 8},
            "warmup": {"episodes": 0},
            "credit": {"advantage": "gae", "rewards": [{"name": "spa"}]},
            "value": {"fit": "least_squares"},
            "progress": progress,
            "evaluation": {"limit": 4},
            "steps": STEPS,
            "checkpoint_every": STEPS,
            **changes,
        }
    )


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A finished run and its summary."""
    folder = tmp_path_factory.mktemp("explored") / "run"
    return folder, asyncio.run(train(config(), folder))


def work_until(folder: Path, phase: str, lines: int, made: RunConfig | None = None) -> None:
    """Begin the run, and kill this process at so many lines of a phase; continue it where it was begun."""
    resume, seen = (folder / "config.toml").is_file(), 0

    def report(line: dict[str, Any]) -> None:
        nonlocal seen
        seen += line["phase"] == phase
        if not resume and seen == lines:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(train(None if resume else made or config(), folder, resume=resume, report=report))


MOMENTS = [("exploration", 3), ("estimator", 2), ("train", 1)]


@pytest.mark.deep
@pytest.mark.parametrize(("phase", "lines"), [pytest.param(*MOMENTS[0], marks=pytest.mark.slow), *MOMENTS[1:]])
def test_a_run_killed_within_or_after_exploration_goes_on_to_the_same_bits(calm, tmp_path, phase, lines):
    run = tmp_path / "run"
    assert ended(start(lambda: work_until(run, phase, lines))) == -signal.SIGKILL
    kept = left_behind(run)
    assert any("step_000000" in name for name in kept) == (phase != "train"), (
        "what was explored is kept until it is used"
    )
    assert ended(start(lambda: work_until(run, phase, lines))) == 0
    assert figures(run) == figures(calm[0]) and not left_behind(run)


def test_exploration_counts_in_the_budget_that_the_run_reports(calm):
    folder, summary = calm
    lines = read_metrics(folder)
    assert summary["exploration"]["episodes"] == EPISODES
    assert summary["played"]["episodes"] == EPISODES + STEPS * A_STEP
    steps = [line for line in lines if line["phase"] == "train"]
    assert [line["played_episodes"] for line in steps] == [EPISODES + A_STEP, EPISODES + 2 * A_STEP]
    drawn = summary["exploration"]["tokens"] + sum(line["drawn_tokens"] for line in steps)
    assert summary["played"]["tokens"] == steps[-1]["played_tokens"] == drawn


def test_the_stage_shows_how_far_it_is_and_what_it_found(calm):
    lines, summary = read_metrics(calm[0]), calm[1]
    assert [line["played_episodes"] for line in lines if line["phase"] == "exploration"] == [9, 18, 27, 36]
    passes = [line for line in lines if line["phase"] == "estimator"]
    assert 1 <= len(passes) <= 3 and {"progress_loss", "estimate_error", "estimate_explained"} <= passes[0].keys()
    assert summary["exploration"]["estimate_error"] == min(line["estimate_error"] for line in passes)
    assert passes[-1]["progress_loss"] < passes[0]["progress_loss"]


def test_the_estimator_is_trained_before_the_first_step_and_fixed_then(calm):
    folder = calm[0] / "checkpoints"
    first, last = (read_tensors(folder / f"step_{step:06d}") for step in (0, STEPS))
    own = [name for name in first if name.startswith("progress.")]
    assert own and all(torch.equal(first[name], last[name]) for name in own)
    assert not [name for name in own if "optimizer" in name], "it learns no more"
    assert any(first[name].any() for name in own if name.startswith("progress.own.2")), "its last layer began at 0"


def test_an_estimator_of_its_own_gives_other_weights_than_one_that_learns_along(calm, tmp_path):
    along = asyncio.run(train(config({"fit": "least_squares", "trust": "full"}), tmp_path / "run"))
    assert along["weights"] != calm[1]["weights"] and "exploration" not in along
    assert along["played"]["episodes"] == STEPS * A_STEP


def test_outcomes_that_do_not_differ_stop_the_run_and_say_why(tmp_path):
    with pytest.raises(LearningFailed, match="all came to the outcome 0, from which no estimator learns"):
        asyncio.run(train(config(env={"id": "manyturn/Maze-v0", "args": {"max_turns": 2}}), tmp_path / "run"))


def test_a_single_training_task_leaves_nothing_to_measure_on(tmp_path):
    alone = tmp_path / "alone.py"
    alone.write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\nfrom chances import Chances\n\n"
        "class Alone(Chances):\n    def tasks(self, split):\n        return super().tasks(split)[:1]\n"
    )
    with pytest.raises(LearningFailed, match="are all of one task, which is held out"):
        asyncio.run(train(config(env={"id": f"{alone}:Alone"}), tmp_path / "run"))


def test_options_of_exploration_that_cannot_act_are_refused():
    with pytest.raises(ConfigError, match=r"episodes = 4 are of one task in groups of 3, .* give 6 or more"):
        config({"body": "own", "exploration": {"episodes": 4}})
    recipe = config().model_dump(mode="json", exclude_unset=True)
    with pytest.raises(ConfigError, match=r"progress\.exploration has no effect with progress\.body = 'policy'"):
        configure(recipe, {"progress": {"body": "policy", "exploration": {"episodes": 64}}})
    with pytest.raises(ConfigError, match=r"progress\.lr has no effect with progress\.body = 'own'"):
        configure(recipe, {"progress": {"lr": 0.1}})


@pytest.mark.parametrize("own", [{}, {"hidden": 8}])
def test_a_critic_of_its_own_gives_other_weights_than_a_head(tmp_path, own):
    plain = {"credit": {"advantage": "gae"}, "progress": None}
    runs = {name: {**plain, "value": value} for name, value in [("head", {}), ("own", {"body": "own", "own": own})]}
    made = {name: asyncio.run(train(config(**changes), tmp_path / name)) for name, changes in runs.items()}
    assert made["head"]["weights"] != made["own"]["weights"]
    lines = [line for line in read_metrics(tmp_path / "own") if line["phase"] == "train"]
    assert all(line["value_loss"] is not None for line in lines)


CRITICS = [{"fit": "least_squares"}, {"body": "own", "own": {"lr": 1e-2}}]


@pytest.mark.parametrize("value", CRITICS, ids=str)
def test_a_critic_that_is_trained_before_the_first_step_explains_it_and_moves_no_policy(tmp_path, value):
    plain = {"credit": {"advantage": "dual_gae"}, "progress": None, "value": value}
    trained = {**plain, "value": {**value, "pretraining": {"episodes": EPISODES, "passes": 4}}}
    made = {"plain": plain, "trained": trained}
    summaries = {name: asyncio.run(train(config(**changes), tmp_path / name)) for name, changes in made.items()}
    begun = [
        load_file(tmp_path / name / "checkpoints/step_000000/model/model.safetensors") for name in ("plain", "trained")
    ]
    assert all(torch.equal(begun[0][name], begun[1][name]) for name in begun[0]), "only the critic has learnt"
    lines = {name: read_metrics(tmp_path / name) for name in made}
    first = {name: next(line for line in lines[name] if line["phase"] == "train") for name in made}
    assert first["plain"]["value_explained"] <= 0 < first["trained"]["value_explained"]
    passes = [line["value_explained"] for line in lines["trained"] if line["phase"] == "critic"]
    assert len(passes) == 4 and passes[0] <= 0 < passes[-1]
    assert summaries["trained"]["played"]["episodes"] == EPISODES + STEPS * A_STEP


def test_a_run_killed_while_its_critic_is_trained_goes_on_to_the_same_bits(tmp_path):
    own = {"body": "own", "pretraining": {"episodes": EPISODES, "passes": 3}}
    changes = {"credit": {"advantage": "dual_gae"}, "progress": None, "value": own}
    made = config(**changes)
    asyncio.run(train(made, tmp_path / "calm"))
    run = tmp_path / "run"
    assert ended(start(lambda: work_until(run, "critic", 2, made))) == -signal.SIGKILL
    assert ended(start(lambda: work_until(run, "critic", 2, made))) == 0
    assert figures(run) == figures(tmp_path / "calm")
