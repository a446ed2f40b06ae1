"""A training of seconds of a method and of its base, which begin alike and have everything else alike.

What a method is worth is not measured here, only that it is not inert and does not break what its base can do: held-out
success after it is not far below the base's, on the same tasks, where the base itself has learnt.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from two_steps import ROUNDING, Trained, apart

from manyturn.agents.evaluation.paired_comparison import Evaluated, read_evaluation, same_tasks, values_over
from manyturn.agents.evaluation.statistics import Interval, paired_difference
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.run.loop.loop import train

OFTEN = frozenset({"gae"})
PAIRS = ("turn_dpo", "step_dpo", "copg", "agent_q")
PLAIN: dict[str, Any] = {"name": "reinforce", "aggregation": "token-sum", "reference": True}
LOST = 0.25  # success that a method may lose against its base; one that learns nothing loses more
DOORS = f"{Path(__file__).with_name('doors.py')}:Doors"
CRITIC: dict[str, Any] = {"value": {"lr": 1e-2}}
WORLD: dict[str, Any] = {
    "env": {"id": DOORS},
    "model": {"name": "tiny", "width": 32, "layers": 2, "heads": 2},
    "warmup": {"episodes": 400, "noise": 0.35, "until_success": 0.3, "check_every": 25, "check_episodes": 64},
    "rollout": {"tasks": 12, "group": 8},
    "credit": {"advantage": "grpo"},
    "learner": {"lr": 2e-3, "minibatch": 16, "old_logprobs": "engine"},
    "evaluation": {"limit": 17, "repeats": 6},
    "steps": 10,
    "checkpoint_every": 100,
    "device": "cpu",
}
# What a method cannot do without, or what this small world asks of it.
OPTIONS: dict[str, dict[str, Any]] = {
    # Success ends an episode of Doors, so that comparing inside equal lengths would leave nothing to compare.
    "stratified": {"credit": {"advantage": {"stratum": "turns", "blend": 0.2}}},
    "spo": {"credit": {"advantage": {"forgetting": "steady"}}},
    **{name: {"judge": {"min_agreement": 0.5}} for name in ("capo", "renorm", "attribution")},
    "gae": CRITIC,
    "turn_gae": CRITIC,
    "bilevel_gae": CRITIC,
    "dual_gae": {**CRITIC, "value": {**CRITIC["value"], "pretraining": {"episodes": 96}}},
    "arbitrary_entropy": {
        "rollout": {"tempering": {"target": 0.3}},
        "learner": {"old_logprobs": "learner"},
    },
    **{name: {"rollout": {"branching": {"initial": 3, "order": "random"}}} for name in ("forks", "pav")},
    "gspo": {"objective": {"low": 0.2, "high": 0.2}},
    "istar": {"implicit": {"beta": 0.05}},
    # Episodes of several tasks share a bundle's blame, too coarsely for twelve tasks: success falls for twenty steps.
    "riskpo": {"credit": {"advantage": {"bundle": 1}}},
    **{name: {"objective": PLAIN} for name in PAIRS},
    "agent_q": {"objective": PLAIN, "judge": {"min_agreement": 0.5}},
}
# What both have, where a method's way to learn asks for it. Without rewards for turns, some methods are GRPO.
PAID: dict[str, Any] = {"env": {"wrappers": [{"name": "progress_gain", "scale": 0.5}]}}
ONE_UPDATE: dict[str, Any] = {"steps": 16, "learner": {"minibatch": 96}}
SETTINGS: dict[str, dict[str, Any]] = {
    "reinforce": ONE_UPDATE,
    # Turns of a branch that another episode drew weigh nothing there, so that the advantages of a few episodes do not
    # sum to 0, and several updates of a few go to and fro.
    "forks": ONE_UPDATE,
    "pav": ONE_UPDATE,
    # Most of their advantages are below 0: several updates of a few push away whatever those few said.
    "psr_nsr": ONE_UPDATE,
    "riskpo": ONE_UPDATE,
    **dict.fromkeys(PAIRS, ONE_UPDATE),
    "mt_grpo": PAID,
    "igpo": PAID,
}
_DONE: dict[str, Path] = {}


def learns(name: str, base: dict[str, Any], stage: dict[str, Any], tmp: pytest.TempPathFactory) -> Path:
    """Train with a method on top of its base, and with the base alone, under the same settings.

    Returns:
        The folder of the method's run.
    """
    settings = {**base, **SETTINGS.get(name, {})}
    theirs = _run([settings], tmp)
    ours = _run([settings, stage, OPTIONS.get(name, {})], tmp)
    learnt = json.loads((theirs / "summary.json").read_text())["difference"]
    assert learnt["ci_low"] > 0.1, "the base has learnt, so that there is something to lose"
    steps = settings.get("steps", WORLD["steps"])
    assert apart(*(Trained.of(run, steps, []) for run in (ours, theirs))) > ROUNDING, "the method is inert"
    found = ahead(ours, theirs)
    assert found.mean > -LOST, (found, learnt)
    return ours


def ahead(ours: Path, theirs: Path) -> Interval:
    """How far the success of a run's policy on held-out tasks is above that of another run's on the same ones."""
    both = [read_evaluation(run) for run in (ours, theirs)]
    tasks = same_tasks(both)
    return paired_difference(*(_successes(one, tasks) for one in both), proportion=True)


def _run(layers: list[dict[str, Any]], tmp: pytest.TempPathFactory) -> Path:
    """The folder of a run, which is made once."""
    config = configure(WORLD, *layers)
    text = config.model_dump_json()
    if text not in _DONE:
        folder = tmp.mktemp("learning") / "run"
        asyncio.run(train(config, folder))
        _DONE[text] = folder
    return _DONE[text]


def _successes(one: Evaluated, tasks: Mapping[str, str]) -> dict[str, list[float]]:
    return values_over(one.rows, "success", tasks)


def often(names: Iterable[str]) -> list[Any]:
    """The methods as parameters: a critic in the default tests, all of them in make test-all."""
    return [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in names]
