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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from manyturn.audit.external_continuations import (
    GroupReturns,
    Replay,
    ReplayMany,
    Replies,
    continued,
    player_of,
    refuse_other_replies,
)
from manyturn.audit.replay_checks import ReplayCheck, TurnLuck
from manyturn.trainers.credit.audit.anchor_quality import AnchorScore, anchor_scores
from manyturn.trainers.credit.audit.correlation import Estimate
from manyturn.trainers.credit.audit.effects import half_range
from manyturn.trainers.credit.audit.scores import MethodScore, Scorer, TruthScore, score_methods
from manyturn.trainers.credit.audit.turn_sample import AuditedTask, AuditSample
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_rollouts import Rollout, batch_of, singletons

ENOUGH = 0.8  # reliability of the truth, as the default of ``manyturn credit-audit``


@dataclass(frozen=True, eq=False)
class RolloutAudit:
    """Scores of methods on rollouts. Printed, it is a table.

    Attributes:
        sample: the turns with the true effect of each, as ``sample.effects``.
        replayed: how the continuations compare with the rollouts that they continue.
        luck: of the turns whose recorded reply was repeated.
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
    replayed: ReplayCheck
    luck: TurnLuck
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
        lines += [str(self.replayed), str(self.luck)]
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
    replies: Replies | None = None,
) -> RolloutAudit:
    """Score methods by how far their credit follows the true effect of each turn of rollouts.

    Every turn costs ``continuations`` endings, and as many again where its reply is repeated. First turns of a group
    share the endings from before them.

    Args:
        rollouts: with several of each group, all of which begin in one state. Those with a reward that is None or NaN
            are left out.
        replay: plays one continuation from the middle of a rollout.
        methods: words as ``gigpo``, ``gra+gigpo`` or ``gigpo:turn_weight=2.0``, or configurations by name; none are all
            advantages.
        continuations: of each state, and of each reply.
        replay_many: in place of ``replay``: plays all continuations of a group in one call.
        replies: of each rollout, the recorded reply of each turn, as text or ids; None for a turn in which chance has
            no part. More continuations repeat them with chance drawn again, and the effect is then without the turn's
            luck. The function gets a first reply too, or a list of them, and returns (sum, first reply) where it is not
            None.

    Raises:
        ValueError: the rollouts do not fit each other, a method does not exist, a continuation returned no number or
            began with another reply than the given one, or there are fewer than two continuations.
    """
    if continuations < 2:
        raise ValueError(f"continuations = {continuations}: one says nothing of its error; give 2 or more")
    play = player_of(replay, replay_many, repeats=replies is not None)
    configs = dict(methods) if isinstance(methods, Mapping) else _configs(methods)
    batch = batch_of(rollouts)
    turns_E = np.bincount(batch.episode_K).tolist()
    if replies is not None:
        refuse_other_replies(replies, turns_E)
    recorded = replies if replies is not None else [[None] * turns for turns in turns_E]
    refused = {name: problem for name, config in configs.items() if (problem := singletons(batch, config))}
    places: dict[object, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        if not math.isnan(rollout.episode_return()):
            places.setdefault(rollout.group, []).append(place)
    if not places:
        raise ValueError("no rollout has all of its rewards: score them first")
    _refuse_other_starts(rollouts, places)
    played = [continued(members, play, continuations, recorded) for members in places.values()]
    groups = [[rollouts[place] for place in members] for members in places.values()]
    sample, replayed, luck = _measured(groups, played)
    scores, skipped, _ = score_methods(sample, {name: one for name, one in configs.items() if name not in refused})
    return RolloutAudit(
        sample,
        Scorer(sample).truth(),
        scores,
        {**refused, **skipped},
        anchor_scores(sample),
        continuations=sum(group.returns_CM.size for group in played),
        replayed=replayed,
        luck=luck,
        unscorable=len(rollouts) - sum(map(len, places.values())),
    )


def _measured(
    groups: Sequence[Sequence[Rollout]], played: Sequence[GroupReturns]
) -> tuple[AuditSample, ReplayCheck, TurnLuck]:
    """The turns with their true effects, and how continuations compare with what the rollouts earned."""
    reach = half_range(group.returns_CM for group in played)
    batches = [batch_of(members) for members in groups]
    tasks, luck, errors = list[AuditedTask](), list[np.ndarray](), list[np.ndarray]()
    for members, batch, group in zip(groups, batches, played, strict=True):
        tasks.append(AuditedTask(members, group.effects(batch.reward_K, reach), group.before_K))
        luck_KM, error_K = group.luck(batch.reward_K, reach)
        luck.append(luck_KM)
        errors.append(error_K)
    rollout_K = np.concatenate([group.rollout_K for group in played])
    is_repeated_K = np.concatenate([group.is_repeated_K for group in played])
    return_K = np.concatenate([batch.turn_return_K(1.0) for batch in batches])
    continued_KM = np.concatenate([group.returns_CM[group.before_K] for group in played])
    return (
        AuditSample.of(tasks),
        ReplayCheck.of(return_K, continued_KM, rollout_K),
        TurnLuck.of(np.concatenate(luck), np.concatenate(errors), rollout_K[is_repeated_K]),
    )


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


def _configs(words: Sequence[str]) -> dict[str, CreditConfig]:
    """Configurations by name; without words all advantages."""
    from manyturn.audit.methods import methods_of  # with the recipes, which credit itself does not need

    configs = methods_of(words)
    return configs if words else {name: one for name, one in configs.items() if not (one.rewards or one.modulation)}


def _shown(ends: Estimate) -> str:
    if math.isnan(ends.low):
        return f"{ends.mean:.2f} [one group]"
    return f"{ends.mean:.2f} [{ends.low:.2f}, {ends.high:.2f}]"
