"""Runs with vLLM: three steps of a real model, and the alarm where vLLM draws with something else."""

import asyncio
from pathlib import Path
from typing import Any

import faulty_vllm  # noqa: F401  registers an engine
import pytest
import torch

from manyturn.agents.model.language_model import load_pretrained
from manyturn.envs.contract.options.overlay import overlay
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.usefixtures("vllm_package")]
SMOLLM2: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"difficulty": "easy", "max_turns": 3}},
    "engine": {"name": "vllm", "kv_gib": 0.5},
    "agent": {"format": "free_text"},
    "sampling": {"max_tokens": 12},
    "warmup": {"episodes": 0},
    "rollout": {"tasks": 1, "group": 3, "cut_share": 1.0},
    "credit": {  # it hardly ever reaches the goal, so that lengths of replies and what was understood have to teach
        "advantage": "gigpo",
        "rewards": [
            {"name": "invalid_penalty", "flag": "understood"},
            {"name": "overlong", "max_tokens": 12, "buffer": 11, "over": "reply"},
        ],
    },
    "learner": {"minibatch": 3, "lora_rank": 0, "lr": 1e-4},
    "evaluation": {"limit": 1},
    "steps": 3,
    "device": "cpu",
    "threads": 1,
}
TINY: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 8}},
    "model": {"name": "tiny", "width": 64, "layers": 2, "heads": 2, "sample_tasks": 4},
    "agent": {"system": "Mind the walls. " * 40},  # more than a block, which has 128 tokens
    "warmup": {"episodes": 24, "noise": 0.0, "batch": 4, "max_updates": 24, "check_every": 12, "check_episodes": 4}
    | {"until_success": 1.0, "must_succeed": False},
    "sampling": {"max_tokens": 6, "temperature": 0.7},
    "rollout": {"tasks": 2, "group": 2, "cut_share": 1.0},
    "evaluation": {"limit": 2},
    "steps": 1,
    "device": "cpu",
}


def test_three_steps_of_a_real_model_are_drawn_with_its_own_probabilities(tmp_path, smollm2_folder):
    config = configure(overlay(SMOLLM2, {"model": {"name": "pretrained", "path": str(smollm2_folder)}}))
    assert config.objective.correction is not None, "on by default, where engine and learner are two programs"
    summary = asyncio.run(train(config, tmp_path / "run"))
    steps = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert [line["step"] for line in steps] == [1, 2, 3] and len({line["version"] for line in steps}) == 3
    assert max(line["engine_gap"] for line in steps) < 1e-3
    assert max(line["engine_ratio_max"] for line in steps) < 1.001
    assert not any("engine_alarm" in line for line in steps) and summary["weights"]
    some = torch.tensor([[*range(1000, 1030)]])
    with torch.no_grad():
        first, last = (model(input_ids=some).logits.log_softmax(-1) for model in models(tmp_path / "run", 0, 3))
    assert (first - last).abs().max() > 0.1, "weights that never arrived would go unnoticed"


def models(run: Path, *steps: int) -> list[Any]:
    """What was learnt, up to some steps."""
    folders = [run / "checkpoints" / f"step_{step:06d}" / "model" for step in steps]
    return [load_pretrained(str(folder), torch.device("cpu")).model for folder in folders]


@pytest.mark.parametrize(
    ("fault", "cause", "more"),
    [
        ("temperature", "temperature: its log-probabilities are those of temperature", {}),
        ("stale_prefix", "stale prefix: ", {}),
        ("no_adapters", "adapters: it draws without them", {"learner": {"lora_rank": 8, "lr": 1e-2}}),
    ],
)
def test_what_vllm_draws_otherwise_stops_the_run_before_it_is_learnt_from(tmp_path, fault, cause, more):
    engine = {"engine": {"name": "faulty_vllm", "fault": fault, "kv_gib": 0.25}}
    with pytest.raises(LearningFailed, match=cause):
        asyncio.run(train(configure(overlay(overlay(TINY, engine), more)), tmp_path / "run"))
    assert not [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
