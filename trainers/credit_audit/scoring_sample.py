"""Sample that an audit scores methods on, made from played groups: rollouts with columns, effects, anchors and choices.

Columns that methods need come from the audit itself:

- value: what a perfect critic would say, the mean of continuations that are no part of the truth;
- contribution: reward plus that critic's value after the turn, minus that before it;
- implicit: the same as contribution, which a perfect implicit reward is but for the noise of its policy;
- entropy: of the policy's actions in the situation, as its continuations began;
- progress: what the environment reports; action: a number for each action's text;
- teacher: what a policy that knows it will succeed thinks of the action, against what this one thinks, which by Bayes's
  rule is the logarithm of the chance of success after it over that before it; a chance is the critic's value as a share
  of the range of all returns;
- belief and prior, where the environment names a true answer: the chance of success after a turn, and at first;
- drift and reference: 0, for the policy stands still, where it began.

Methods that compare siblings get branches of every turn, which are continuations of the critic: each repeats the turns
before, and what it drew from there on counts as one turn. So do methods whose word ends in ``+branches``: a branch is
one more visit to the situations on its way.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from manyturn.envs.contract.random_keys import digest
from manyturn.trainers.credit.audit.gradient_alignment import FirstActions
from manyturn.trainers.credit.audit.method_credit import BRANCHES
from manyturn.trainers.credit.audit.turn_sample import AuditedTask
from manyturn.trainers.credit.external_rollouts import Rollout
from manyturn.trainers.credit_audit.continuations import effects_of, reach_of
from manyturn.trainers.credit_audit.group_episodes import GroupEpisode, GroupTurn, PlayedTask

ANCHORS: Mapping[str, Callable[[GroupEpisode], list[str]]] = {
    "text": lambda episode: [digest(turn.observation) for turn in episode.turns],
    "history": lambda episode: [
        digest([(turn.observation, turn.action) for turn in episode.turns[:k]], episode.turns[k].observation)
        for k in range(len(episode.turns))
    ],
    "clock": lambda episode: [digest(turn.anchor, k) for k, turn in enumerate(episode.turns)],
}
"""Kind -> the situations of an episode by it: the observation's text; all that was seen and done; the environment's
own anchor and the turn's number."""
ORACLE = frozenset({"value", "contribution", "implicit", "teacher", "belief"})  # made from true values
OF_CRITIC = ORACLE | {BRANCHES}

_SURE = 0.01


def audited_tasks(
    played: Sequence[PlayedTask], siblings: int, anchors: Sequence[str] = tuple(ANCHORS)
) -> list[AuditedTask]:
    """The tasks with their true effects.

    Args:
        siblings: branches of each turn at most.
        anchors: kinds to compare the environment's own anchor with.
    """
    reach = reach_of(played)
    parts = list(dict.fromkeys(name for task in played for turn in task.turns for name in turn.parts))
    actions = {action: n for n, action in enumerate(dict.fromkeys(t.action for task in played for t in task.turns))}
    returns = [total for task in played for start in task.starts for total in start.critic]
    ends = (min(returns), max(returns)) if returns else (0.0, 0.0)
    return [
        replace(_audited(task, reach, parts, anchors, actions, ends), branches=_branches(task, siblings))
        for task in played
    ]


def _audited(
    played: PlayedTask,
    reach: float,
    parts: Sequence[str],
    anchors: Sequence[str],
    actions: Mapping[str, int],
    ends: tuple[float, float],
) -> AuditedTask:
    turns = played.turns
    return AuditedTask(
        rollouts=[_rollout(played, episode, parts, actions, ends) for episode in played.episodes],
        effects=effects_of(played, reach),
        starts_K=np.array([turn.start for turn in turns]),
        choices=FirstActions(
            situations=[turn.anchor for turn in turns],
            actions=[turn.action for turn in turns],
            firsts=[[played.actions[first] for first in played.starts[turn.start].firsts] for turn in turns],
            returns=[np.array(played.starts[turn.start].returns) for turn in turns],
        ),
        anchors={kind: [one for episode in played.episodes for one in ANCHORS[kind](episode)] for kind in anchors},
    )


def _rollout(
    played: PlayedTask,
    episode: GroupEpisode,
    parts: Sequence[str],
    actions: Mapping[str, int],
    ends: tuple[float, float],
) -> Rollout:
    turns = episode.turns
    columns: dict[str, list[float]] = {"action": [float(actions[turn.action]) for turn in turns]}
    columns["drift"] = columns["reference"] = [0.0] * len(turns)
    token_columns = dict[str, list[list[float]]]()
    if all(turn.progress is not None for turn in played.turns):
        columns["progress"] = [float(turn.progress or 0.0) for turn in turns]
    if any(start.critic for start in played.starts):
        pairs = zip(_after(played, turns), _before(played, turns), strict=True)
        columns["contribution"] = [after - before for after, before in pairs]
        columns["implicit"] = columns["contribution"]
        token_columns["value"] = [[_value(played, turn.start)] * turn.tokens for turn in turns]
        after = _after(played, turns)
        before, later = ([_chance(value, ends) for value in values] for values in (_before(played, turns), after))
        gaps = [math.log(q) - math.log(p) for q, p in zip(later, before, strict=True)]
        token_columns["teacher"] = [[gap / turn.tokens] * turn.tokens for gap, turn in zip(gaps, turns, strict=True)]
        if all(other.names_answer for other in played.episodes):
            columns |= {"belief": [*later[:-1], math.nan], "prior": [before[0]] * len(turns)}
    token_columns["entropy"] = [[_entropy(played, turn.start)] * turn.tokens for turn in turns]
    return Rollout(
        group=played.task,
        rewards={name: [turn.parts.get(name, 0.0) for turn in turns] for name in parts},
        tokens=[turn.tokens for turn in turns],
        anchors=[turn.anchor for turn in turns],
        anchor_texts=[turn.anchor_text for turn in turns],
        format_valid=[turn.format_valid for turn in turns],
        understood=[turn.understood for turn in turns],
        truncated=episode.truncated,
        columns=columns,
        token_columns=token_columns,
    )


def _branches(played: PlayedTask, siblings: int) -> list[Rollout]:
    """The episodes, and then the branches of each of their turns; nothing where no critic has played."""
    if not any(start.critic for start in played.starts):
        return []

    def rollout(turns: Sequence[GroupTurn], rewards: Sequence[float], drawers: Sequence[int]) -> Rollout:
        return Rollout(
            group=played.task,
            rewards=rewards,
            anchors=[turn.anchor for turn in turns],
            columns={BRANCHES: [float(one) for one in drawers]},
            token_columns={"value": [[_value(played, turn.start)] for turn in turns]},
        )

    own, branches, drawn = list[Rollout](), list[Rollout](), len(played.episodes)
    for member, episode in enumerate(played.episodes):
        rewards = [turn.reward for turn in episode.turns]
        own.append(rollout(episode.turns, rewards, [member] * len(rewards)))
        for k, turn in enumerate(episode.turns):
            # Members of a group begin alike, so that their first turns are siblings already.
            for total in played.starts[turn.start].critic[: siblings if k or not member else 0]:
                branches.append(rollout(episode.turns[: k + 1], [*rewards[:k], total], [*[member] * k, drawn]))
                drawn += 1
    return [*own, *branches]


def _value(played: PlayedTask, start: int) -> float:
    return math.fsum(played.starts[start].critic) / len(played.starts[start].critic)


def _before(played: PlayedTask, turns: Sequence[GroupTurn]) -> list[float]:
    """The critic's value before each turn."""
    return [_value(played, turn.start) for turn in turns]


def _after(played: PlayedTask, turns: Sequence[GroupTurn]) -> list[float]:
    """Each turn's reward and the critic's value after it."""
    later = [*_before(played, turns)[1:], 0.0]
    return [turn.reward + value for turn, value in zip(turns, later, strict=True)]


def _chance(value: float, ends: tuple[float, float]) -> float:
    """A value as a share of the range of returns, off 0 and 1 by as much as a critic's few continuations tell."""
    low, high = ends
    return min(1 - _SURE, max(_SURE, (value - low) / (high - low))) if high > low else 0.5


def _entropy(played: PlayedTask, start: int) -> float:
    """Entropy in nats of the first actions of the continuations."""
    firsts = played.starts[start].firsts
    return -sum(n / len(firsts) * math.log(n / len(firsts)) for n in Counter(firsts).values())
