"""Worlds of two short runs in which the effect of an option on the weights shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training_options import UNSET
from two_steps import LAMPS, STATES, STATING, TEACHING, TINY

World = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """Two runs that differ in an option.

    Attributes:
        other: what the second run has; of a choice, the options that are given with it.
        world: what both runs have.
        needs: what the second run has to have with it, and the first could not have.
        first: what the first run has.
        steps: of both.
    """

    other: Any = None
    world: World = field(default_factory=dict)
    needs: World = field(default_factory=dict)
    first: Any = UNSET
    steps: int = 2


class Matters(Case):
    """Their weights must differ."""


@dataclass(frozen=True)
class Unchanged(Case):
    """No run learns anything else by it, for this reason. Where ``other`` is given, weights are held to that."""

    why: str = field(kw_only=True)
    other: Any = UNSET


GIGPO: World = {"credit.advantage": "gigpo"}
CRITIC: World = {"value": {"lr": 0.1}}
ESTIMATOR: World = {"progress": {"lr": 0.1, "trust": "full"}}
OWN_CRITIC: World = {"value": {"body": "own", "lr": UNSET, "clip": UNSET}}
EXPLORES = {"episodes": 16, "passes": 2}
EXPLORER = {"body": "own", "lr": UNSET, "trust": "full"}
EXPLORING: World = {"progress": {**EXPLORER, "exploration": EXPLORES}}
LEARNT: World = {"model": {**TINY}, "warmup": {**TEACHING, "max_updates": 6, "check_every": 6, "until_success": 0.0}}
DUET: World = {**LEARNT, "env.id": LAMPS["env"]["id"].replace("lamps.py:Lamps", "duet.py:Duet")}
MEASURED = {"until_success": 1.0, "check_every": 1, "check_episodes": 12, "max_updates": 12}
CHOSEN: World = {**LEARNT, "warmup": {**TEACHING, **MEASURED}, "agent.only_admissible": True}
CALLED: World = {
    **LEARNT,
    "env.args": {"calls": True},
    "sampling.max_tokens": 24,
    "agent.max_context": 512,
    "agent.only_admissible": True,
}
TWELVE: World = {"env.args": {"copies": 1}, "rollout.tasks": 8}  # of 12 tasks, so that they come again
DEEP: World = {**LEARNT, "model": {**TINY, "layers": 2}, "learner.lora_rank": 4}
MANY: World = {"env.args": {"copies": 9}, "rollout.tasks": 2}  # of 108 tasks
ALL: World = {"env.args": {"copies": 1}, "rollout.tasks": 12}
UNSCORED: World = {
    "env.args": {"unscored": True},
    "rollout.group": 2,
    "rollout.tasks": 8,
}  # groups of which one is left
ONCE: World = {"learner.minibatch": 16}
COARSE: World = {"engine": "coarse"}
FLAT: World = {"credit.rewards=invalid_penalty": {"flag": "understood"}, "rollout.group": 2, "rollout.tasks": 8}
SHARES: World = {"credit.rewards=overlong": {"max_tokens": None, "buffer": None, "over": "reply", "buffer_share": 0.5}}
SPLIT: World = {"rollout.branching": {"initial": 2, "threshold": 0.5}}
HARD: World = {"env.args": {"limit": 2}, "rollout.tasks": 8}  # in so few turns most attempts fail
AGAIN: World = {"env.args": {"limit": 2, "copies": 1}, "rollout.tasks": 12}  # the same tasks, most attempts fail
GROWS: World = {"rollout.horizon": {"first": 1, "by": 2, "every": 1, "last": 4}}
SURE: World = {"model.path": STATING, **STATES}  # of commands that are numbers
SECOND: World = {"implicit": {"beta": 0.5}}  # a second policy, which rewards from the second step on
PAIRED: World = {"objective": {"name": "reinforce", "aggregation": "token-sum", "reference": True}}
JUDGE = {"verdicts": "episode", "min_agreement": 0.0}
JUDGED: World = {  # both runs have verdicts on turns, and the part in their returns
    "judge": {"min_agreement": 0.0},
    "credit.rewards=part_weights": {"weights": {"judge": 0.5}},
}
ELSEWHERE = "of endpoints that judge; play/judges/test_judging.py asks one"
GATE = {"part": "outcome", "threshold": 0.5}
ONE_MODEL = "engine and learner are one model here"
RECORD = "of what is recorded"
SERVICE = "of how a worker is watched, which decides whether an episode counts"
DEFAULTED = "without an entry it has its defaults"
