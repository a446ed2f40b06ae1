"""What an engine draws differently from its learner is noticed before it is learnt from, and its cause is named."""

import asyncio
from pathlib import Path
from typing import Any

import faulty_engine  # noqa: F401  registers an engine
import pytest

from manyturn.envs.contract.options.overlay import overlay
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

RECIPE: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 8}},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
    "agent": {"instructions": False},
    "warmup": {
        "episodes": 24,
        "noise": 0.0,
        "must_succeed": False,
        "until_success": 1.0,
        "batch": 4,
        "max_updates": 24,
        "check_every": 12,
        "check_episodes": 2,
    },
    "sampling": {"max_tokens": 6, "temperature": 0.7},
    "rollout": {"tasks": 2, "group": 2},
    "credit": {"rewards": [{"name": "overlong", "max_tokens": 6, "buffer": 5, "over": "reply"}]},
    "learner": {"minibatch": 4},
    "evaluation": {"limit": 2, "greedy": False},
    "steps": 1,
    "device": "cpu",
}
slow = pytest.mark.slow


def run(folder: Path, fault: str, **more: Any) -> list[dict[str, Any]]:
    """The notices of a run with an engine that has this fault."""
    said: list[dict[str, Any]] = []
    config = configure(overlay(RECIPE, {"engine": {"name": "faulty", "fault": fault}, **more}))
    asyncio.run(train(config, folder / "run", report=said.append))
    return [line["notice"] for line in said if line["phase"] == "notice"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("fault", "cause", "more"),
    [
        ("temperature", r"temperature: its log-probabilities are those of temperature (0\.9[5-9]|1\.0[0-5])", {}),
        ("temperature", "temperature: ", {"learner": {"old_logprobs": "engine"}}),
        ("temperature", "temperature: ", {"order": {"kind": "asynchronous"}}),
        pytest.param("stale_prefix", "stale prefix: ", {"agent": {"instructions": True}}, marks=slow),
        pytest.param("no_adapters", "adapters: it draws without them", {"learner": {"lora_rank": 8}}, marks=slow),
        pytest.param("no_weights", "weights: ", {}, marks=slow),
        pytest.param("beginning", "template: it puts the token 0 in front", {}, marks=slow),
    ],
)
def test_a_run_stops_before_it_learns_and_names_what_is_wrong_with_its_engine(tmp_path, fault, cause, more):
    with pytest.raises(LearningFailed, match=cause):
        run(tmp_path, fault, **more)
    assert not [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]


@pytest.mark.slow
def test_an_engine_of_another_precision_is_no_reason_to_stop(tmp_path):
    assert not [line for line in run(tmp_path, "rounding") if "judge the same tokens" in line]


@pytest.mark.slow
def test_a_run_that_is_to_go_on_says_so_in_its_metrics(tmp_path):
    notices = run(tmp_path, "temperature", learner={"engine_alarm": "note"})
    assert any("judge the same tokens differently: temperature" in line for line in notices)
    [line] = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert line["engine_alarm"].startswith("temperature") and line["engine_ratio_max"] > 1.1


def test_an_update_with_learning_rate_0_changes_nothing(tmp_path):
    """Nor does anything ring: what is drawn after it has the probabilities that the learner says."""
    notices = run(tmp_path, "none", learner={"lr": 0.0}, steps=2, checkpoint_every=1, keep_checkpoints=9)
    kept = (tmp_path / "run" / "checkpoints").glob("step_*/model/model.safetensors")
    weights = {file.read_bytes() for file in kept}
    assert len(weights) == 1 and not [line for line in notices if "judge the same tokens" in line]
    steps = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert len(steps) == 2 and max(line["engine_gap"] for line in steps) < 1e-4
    assert {line["grad_norm"] > 0 for line in steps} == {True} and {line["approx_kl"] for line in steps} <= {0.0, -0.0}
