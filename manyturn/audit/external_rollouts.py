"""Audit of another trainer's rollouts: all it takes is a function that plays on from the middle of one.

>>> from manyturn.trainers.credit.external_rollouts import Rollout
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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from manyturn.trainers.credit.audit.anchor_quality import AnchorScore, anchor_scores
from manyturn.trainers.credit.audit.correlation import ROUNDING, Estimate
from manyturn.trainers.credit.audit.effects import END, effects_of_task, half_range
from manyturn.trainers.credit.audit.scores import MethodScore, Scorer, TruthScore, score_methods
from manyturn.trainers.credit.audit.turn_sample import AuditedTask, AuditSample
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_rollouts import Rollout, batch_of, singletons


class Continuation(NamedTuple):
    """A continuation to be played.

    Attributes:
        rollout: place of the rollout in the list.
        turns: how many of its turns are repeated first.
        number: of the continuation: its randomness comes from it.
    """

    rollout: int
    turns: int
    number: int


ENOUGH = 0.8  # reliability of the truth, as the default of ``manyturn credit-audit``
FAR = 3.0  # standard errors between what rollouts and continuations earn
Replay = Callable[[int, int, int], float]
"""Takes the values of a ``Continuation``; plays on with the policy and returns the sum of rewards from there on, which
those of repeated turns are no part of."""
ReplayMany = Callable[[Sequence[Continuation]], Sequence[float]]
"""Takes all continuations of a group's states, so that an engine can draw them together; returns a sum for each."""


class ReplayCheck(NamedTuple):
    """Rewards that rollouts earned from a turn on, and those of the continuations from there.

    A right replay earns the same on average: the policy that continues is the one that played.

    Attributes:
        played: mean over rollouts of the mean over their turns.
        continued: the same of the continuations.
        errors: their difference in standard errors over rollouts; infinite where all differ by the same amount.
    """

    played: float
    continued: float
    errors: float

    def __str__(self) -> str:
        text = f"from a turn on, rollouts earned {self.played:.3g} on average, and continuations {self.continued:.3g}"
        if abs(self.errors) <= FAR:
            return text
        apart = "differ always" if math.isinf(self.errors) else f"are {abs(self.errors):.1f} standard errors apart"
        return (
            f"{text}: they {apart}. Does the replay repeat the turns with the text that the environment got, and "
            "continue with the same policy and chat template?"
        )


@dataclass(frozen=True, eq=False)
class RolloutAudit:
    """Scores of methods on rollouts. Printed, it is a table.

    Attributes:
        sample: the turns with the true effect of each, as ``sample.effects``.
        replayed: how the continuations compare with the rollouts that they continue.
        skipped: method -> why it could not be scored.
        continuations: how many were played.
        unscorable: rollouts that were left out, since a reward of theirs is not known.
    """

    sample: AuditSample = field(repr=False)
    truth: TruthScore
    scores: Sequence[MethodScore]
    skipped: Mapping[str, str]
    anchors: Sequence[AnchorScore]
    continuations: int
    replayed: "ReplayCheck"
    unscorable: int = 0

    def __str__(self) -> str:
        lines = [f"{'method':<24}{'correlation':>22}{'in episodes':>22}{'sign':>8}"]
        for score in sorted(self.scores, key=lambda one: -one.correlation.mean):
            ends = "".join(f"{_shown(one):>22}" for one in (score.correlation, score.within))
            same = f"   the same credit as {score.same_as}" if score.same_as else ""
            sign = "-" if math.isnan(score.sign.mean) else f"{score.sign.mean:.2f}"
            lines.append(f"{score.method:<24}{ends}{sign:>8}{same}")
        reliability = self.truth.reliability
        more = f", below {ENOUGH}: give more continuations" if reliability < ENOUGH else ""
        lines.append(f"reliability of the truth {reliability:.3f}{more}; {self.continuations} continuations")
        lines.append(str(self.replayed))
        if self.unscorable:
            rollouts = "rollout" if self.unscorable == 1 else "rollouts"
            lines.append(f"left out: {self.unscorable} {rollouts} with a reward that is not known")
        return "\n".join([*lines, *(f"not scored: {name}: {why}" for name, why in self.skipped.items())])


def audit_rollouts(
    rollouts: Sequence[Rollout],
    replay: Replay | None = None,
    methods: Sequence[str] | Mapping[str, CreditConfig] = (),
    continuations: int = 64,
    *,
    replay_many: ReplayMany | None = None,
) -> RolloutAudit:
    """Score methods by how far their credit follows the true effect of each turn of rollouts.

    Every turn costs ``continuations`` endings, and first turns of a group share theirs.

    Args:
        rollouts: with several of each group, all of which begin in one state. Those with a reward that is None or NaN
            are left out.
        replay: plays one continuation from the middle of a rollout.
        methods: words as ``gigpo``, ``gra+gigpo`` or ``gigpo:turn_weight=2.0``, or configurations by name; none are all
            advantages.
        continuations: of each state.
        replay_many: in place of ``replay``: plays all continuations of a group in one call.

    Raises:
        ValueError: the rollouts do not fit each other, a method does not exist, a continuation returned no number, or
            there are fewer than two continuations.
    """
    if continuations < 2:
        raise ValueError(f"continuations = {continuations}: one says nothing of its error; give 2 or more")
    if (replay is None) == (replay_many is None):
        raise ValueError("give one of replay, for a continuation at a time, and replay_many, for those of a group")
    configs = dict(methods) if isinstance(methods, Mapping) else _configs(methods)
    batch = batch_of(rollouts)
    turns_E = np.bincount(batch.episode_K).tolist()
    refused = {name: problem for name, config in configs.items() if (problem := singletons(batch, config))}
    places: dict[object, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        if not math.isnan(rollout.episode_return()):
            places.setdefault(rollout.group, []).append(place)
    if not places:
        raise ValueError("no rollout has all of its rewards: score them first")
    _refuse_other_starts(rollouts, places)
    play = replay_many or _one_by_one(replay)
    played = {group: _continued(turns_E, members, play, continuations) for group, members in places.items()}
    reach = half_range(one for returns, _ in played.values() for one in returns)
    tasks, earned = [], list[tuple[float, float]]()
    for group, (returns, starts) in played.items():
        members = [rollouts[place] for place in places[group]]
        before_K = np.array([start for line in starts for start in line])
        after_K = np.array([start for line in starts for start in (*line[1:], END)])
        reward_K = batch_of(members).reward_K
        tasks.append(AuditedTask(members, effects_of_task(returns, before_K, after_K, reward_K, reach), before_K))
        rewards_E = np.split(reward_K, np.cumsum([len(line) for line in starts])[:-1])
        earned += [_from_turns_on(rewards, returns, line) for rewards, line in zip(rewards_E, starts, strict=True)]
    sample = AuditSample.of(tasks)
    scores, skipped, _ = score_methods(sample, {name: one for name, one in configs.items() if name not in refused})
    return RolloutAudit(
        sample,
        Scorer(sample).truth(),
        scores,
        {**refused, **skipped},
        anchor_scores(sample),
        continuations=sum(len(returns) * continuations for returns, _ in played.values()),
        replayed=_replay_check(np.array(earned)),
        unscorable=len(rollouts) - sum(map(len, places.values())),
    )


def _from_turns_on(reward_K: np.ndarray, returns: Sequence[np.ndarray], starts: Sequence[int]) -> tuple[float, float]:
    """Means over a rollout's turns: of what it earned from there on, and of what continuations did."""
    return float(reward_K[::-1].cumsum().mean()), float(np.mean([returns[start].mean() for start in starts]))


def _replay_check(earned_E2: np.ndarray) -> ReplayCheck:
    played, continued = earned_E2.mean(0).tolist()
    gap_E = earned_E2[:, 0] - earned_E2[:, 1]
    error = float(gap_E.std(ddof=1) / np.sqrt(len(gap_E))) if len(gap_E) > 1 else math.inf
    gap = float(gap_E.mean())
    if abs(gap) <= ROUNDING * max(abs(played), abs(continued)):
        return ReplayCheck(played, continued, 0.0)
    return ReplayCheck(played, continued, gap / error if error else math.copysign(math.inf, gap))


def _refuse_other_starts(rollouts: Sequence[Rollout], places: Mapping[object, Sequence[int]]) -> None:
    """Refuse groups of several first states: values before first turns are of one."""
    for group, members in places.items():
        firsts = {place: anchors[0] for place in members if (anchors := rollouts[place].anchors) is not None}
        begun = min(firsts, default=0)
        for place, first in firsts.items():
            if not np.array_equal(first, firsts[begun]):
                raise ValueError(
                    f"rollouts {begun} and {place} of the group {group!r} have other first anchors: give each first "
                    "state a group of its own"
                )


def _one_by_one(replay: Replay | None) -> ReplayMany:
    assert replay is not None
    return lambda continuations: [replay(*one) for one in continuations]


def _continued(
    turns_E: Sequence[int], members: Sequence[int], play: ReplayMany, continuations: int
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Returns by start, and for each member the numbers of the starts before its turns; the first is that of all."""
    wishes, starts = list[Continuation](), list[list[int]]()
    for place in members:
        line = []
        for turn in range(turns_E[place]):
            if turn == 0 and starts:
                line.append(0)
                continue
            line.append(len(wishes) // continuations)
            wishes += [Continuation(place, turn, number) for number in range(continuations)]
        starts.append(line)
    sums = list(play(wishes))
    if len(sums) != len(wishes):
        raise ValueError(f"replay_many returned {len(sums)} sums for {len(wishes)} continuations: return one for each")
    returns = np.array([_number(total, wish) for total, wish in zip(sums, wishes, strict=True)])
    return list(returns.reshape(-1, continuations)), starts


def _number(total: float, wish: Continuation) -> float:
    """The sum of a continuation's rewards. Raises ValueError where it is none."""
    try:
        value = float(total)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"the replay of rollout {wish.rollout} from turn {wish.turns} returned {total!r:.60}: return the sum of "
            "the rewards from there on, as a number"
        )
    return value


def _configs(words: Sequence[str]) -> dict[str, CreditConfig]:
    """Configurations by name; without words all advantages."""
    from manyturn.audit.methods import methods_of  # with the recipes, which credit itself does not need

    configs = methods_of(words)
    return configs if words else {name: one for name, one in configs.items() if not (one.rewards or one.modulation)}


def _shown(ends: Estimate) -> str:
    if math.isnan(ends.low):
        return f"{ends.mean:.2f} [one group]"
    return f"{ends.mean:.2f} [{ends.low:.2f}, {ends.high:.2f}]"
