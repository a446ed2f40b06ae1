"""Audit of another trainer's rollouts: all it takes is a function that plays on from the middle of one.

>>> from manyturn.trainers.credit.rollouts import Rollout
>>> ends = [(task, right) for task in "ab" for right in (0, 1)]
>>> coin = [Rollout(group=task, rewards=[0, right], anchors=["start", right]) for task, right in ends]
>>> def replay(rollout, turns, number):  # the first turn decides, the second one ends it
...     return float(number % 2) if turns == 0 else float(rollout % 2)
>>> audit = audit_rollouts(coin, replay, methods=["grpo"], continuations=8)
>>> audit.sample.effects.effect_K
array([-0.5,  0. ,  0.5,  0. , -0.5,  0. ,  0.5,  0. ])
>>> round(audit.scores[0].correlation.mean, 3)
0.707
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.credit.audit.anchor_scores import AnchorScore, anchor_scores
from manyturn.trainers.credit.audit.correlation import Estimate
from manyturn.trainers.credit.audit.effects import END, effects_of_task, half_range
from manyturn.trainers.credit.audit.sample import AuditedTask, AuditSample
from manyturn.trainers.credit.audit.scores import MethodScore, Scorer, TruthScore, score_methods
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.rollouts import Rollout, batch_of
from manyturn.trainers.credit.stages import ADVANTAGES

Replay = Callable[[int, int, int], float]
"""Takes the place of a rollout, how many of its turns are repeated, and the number of the continuation, from which its
randomness comes; plays on with the policy and returns the sum of rewards from there on, without those of the repeated
turns."""


@dataclass(frozen=True, eq=False)
class RolloutAudit:
    """Scores of methods on rollouts. Printed, it is a table.

    Attributes:
        sample: the turns with the true effect of each, as ``sample.effects``.
        skipped: method -> why it could not be scored.
        continuations: how many were played.
    """

    sample: AuditSample = field(repr=False)
    truth: TruthScore
    scores: Sequence[MethodScore]
    skipped: Mapping[str, str]
    anchors: Sequence[AnchorScore]
    continuations: int

    def __str__(self) -> str:
        lines = [f"{'method':<24}{'correlation':>22}{'within episodes':>22}{'sign':>8}"]
        for score in sorted(self.scores, key=lambda one: -one.correlation.mean):
            ends = "".join(f"{_shown(one):>22}" for one in (score.correlation, score.within))
            lines.append(f"{score.method:<24}{ends}{score.sign.mean:>8.2f}")
        lines.append(f"reliability of the truth {self.truth.reliability:.2f}, {self.continuations} continuations")
        return "\n".join([*lines, *(f"not scored: {name}: {why}" for name, why in self.skipped.items())])


def audit_rollouts(
    rollouts: Sequence[Rollout],
    replay: Replay,
    methods: Sequence[str] | Mapping[str, CreditConfig] = (),
    continuations: int = 64,
) -> RolloutAudit:
    """Score methods by how far their credit follows the true effect of each turn of rollouts.

    Args:
        rollouts: with several of each group, which begin in one state.
        replay: plays on from the middle of a rollout.
        methods: names of advantages, or configurations by name; none are all advantages.
        continuations: of each state.

    Raises:
        ValueError: the rollouts do not fit each other, or there are fewer than two continuations.
    """
    if continuations < 2:
        raise ValueError(f"continuations = {continuations}: one says nothing of its error; give 2 or more")
    turns_E = np.bincount(batch_of(rollouts).episode_K).tolist()
    places: dict[object, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        places.setdefault(rollout.group, []).append(place)
    played = {group: _continued(rollouts, turns_E, members, replay, continuations) for group, members in places.items()}
    reach = half_range(one for returns, _ in played.values() for one in returns)
    tasks = []
    for group, (returns, starts) in played.items():
        members = [rollouts[place] for place in places[group]]
        before_K = np.array([start for line in starts for start in line])
        after_K = np.array([start for line in starts for start in (*line[1:], END)])
        reward_K = batch_of(members).reward_K
        tasks.append(AuditedTask(members, effects_of_task(returns, before_K, after_K, reward_K, reach), before_K))
    sample = AuditSample.of(tasks)
    configs = dict(methods) if isinstance(methods, Mapping) else _named(methods)
    scores, skipped, _ = score_methods(sample, configs)
    number = sum(len(returns) * continuations for returns, _ in played.values())
    return RolloutAudit(sample, Scorer(sample).truth(), scores, skipped, anchor_scores(sample), number)


def _continued(
    rollouts: Sequence[Rollout], turns_E: Sequence[int], members: Sequence[int], replay: Replay, continuations: int
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Returns by start, and for each member the numbers of the starts before its turns; the first is that of all."""
    returns, starts = list[np.ndarray](), list[list[int]]()
    for place in members:
        line = []
        for turn in range(turns_E[place]):
            if turn == 0 and starts:
                line.append(0)
                continue
            line.append(len(returns))
            returns.append(np.array([float(replay(place, turn, number)) for number in range(continuations)]))
        starts.append(line)
    return returns, starts


def _named(methods: Sequence[str]) -> dict[str, CreditConfig]:
    """Configurations by name; of all advantages those that need no options."""
    configs = dict[str, CreditConfig]()
    for name in methods or ADVANTAGES.names():
        try:
            configs[name] = CreditConfig(advantage={"name": name})
        except ConfigError:
            if methods:
                raise
    return configs


def _shown(ends: Estimate) -> str:
    return f"{ends.mean:.2f} [{ends.low:.2f}, {ends.high:.2f}]"
