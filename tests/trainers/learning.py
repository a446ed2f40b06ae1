"""A training of seconds in which held-out success must rise well above the warmed-up policy's."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.run.loop import train

# Grpo learns under empg and gigpo under gspo; gae has a critic, spo no groups.
OFTEN = frozenset({"gae", "gspo"})
DOORS = f"{Path(__file__).with_name('doors.py')}:Doors"
CRITIC: dict[str, Any] = {"value": {"lr": 1e-2}}
# What a method cannot do without, or what this small world asks of it.
OPTIONS: dict[str, dict[str, Any]] = {
    # Success ends an episode of Doors, so that comparing inside equal lengths would leave nothing to compare.
    "stratified": {"credit": {"advantage": {"name": "stratified", "stratum": "turns", "blend": 0.2}}},
    "spo": {"credit": {"advantage": {"name": "spo", "forgetting": "steady"}}},
    "gae": CRITIC,
    "turn_gae": CRITIC,
    "bilevel_gae": CRITIC,
    "gspo": {"objective": {"name": "gspo", "low": 0.2, "high": 0.2}},
    "reinforce": {"steps": 16, "learner": {"lr": 2e-3, "minibatch": 96, "old_logprobs": "engine"}},
}


def learns(name: str, stage: dict[str, Any], path: Path) -> None:
    config = parse_config(
        {
            "env": {"id": DOORS},
            "model": {"name": "tiny", "width": 32, "layers": 2, "heads": 2},
            "warmup": {"episodes": 400, "noise": 0.35, "until_success": 0.3, "check_every": 25, "check_episodes": 64},
            "rollout": {"tasks": 12, "group": 8},
            "learner": {"lr": 2e-3, "minibatch": 16, "old_logprobs": "engine"},
            "evaluation": {"limit": 17, "repeats": 6},
            "steps": 10,
            "checkpoint_every": 20,
            **stage,
            **OPTIONS.get(name, {}),
        }
    )
    summary = asyncio.run(train(config, path))
    assert summary["difference"]["ci_low"] > 0.1, summary
    assert summary["after"]["success"] > 0.7, summary


def often(names: Iterable[str]) -> list[Any]:
    """The methods as parameters: a critic and an objective in the default tests, all of them in make test-all."""
    return [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in names]
