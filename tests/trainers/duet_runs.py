"""Runs of a few seconds in the environment of two who speak in turn, duet.py."""

from pathlib import Path
from typing import Any

from manyturn.envs.contract.options.overlay import overlay
from manyturn.trainers.recipe.config import RunConfig, configure

DUET = f"{Path(__file__).with_name('duet.py')}:Duet"
_BASE = {
    "env": {"id": DUET},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 8},
    "sampling": {"max_tokens": 3},
    "warmup": {"episodes": 0},
    "rollout": {"tasks": 6, "group": 6},
    "learner": {"lr": 3e-3, "minibatch": 12, "old_logprobs": "engine"},
    "credit": {"advantage": "grpo"},
    "evaluation": {"limit": 10},
    "steps": 3,
    "checkpoint_every": 1,
}
_CHOOSING = {"agent": {"only_admissible": True}, "sampling": {"max_tokens": 6}}
_QUICK = {"rollout": {"tasks": 4, "group": 4}, "learner": {"lr": 3e-2, "minibatch": 8}, "evaluation": {"limit": 4}}


def duet_run(**changes: Any) -> RunConfig:
    """A run in the environment, with changes on top."""
    return configure(_BASE, changes)


def partnered_run(liar: Any, **changes: Any) -> RunConfig:
    """One in which a policy learns to call, and the liar comes from elsewhere; all replies are admissible."""
    return duet_run(**overlay(overlay({"roles": {"caller": "me", "liar": liar}}, _CHOOSING | _QUICK), changes))
