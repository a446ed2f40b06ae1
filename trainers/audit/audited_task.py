"""From what was played to what methods are scored on: rollouts with their columns, effects, anchors and choices.

Columns that methods need come from the audit itself:

- value: what a perfect critic would say, the mean of continuations that are no part of the truth;
- contribution: reward plus that critic's value after the turn, minus that before it;
- entropy: of the policy's actions in the situation, as its continuations began;
- progress: what the environment reports.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from manyturn.envs.contract.keys import digest
from manyturn.trainers.audit.played import PlayedEpisode, PlayedTask, PlayedTurn
from manyturn.trainers.audit.task_audit import effects_of, reach_of
from manyturn.trainers.credit.audit.alignment import Choices
from manyturn.trainers.credit.audit.sample import AuditedTask
from manyturn.trainers.credit.rollouts import Rollout

ANCHORS: Mapping[str, Callable[[PlayedEpisode], list[str]]] = {
    "text": lambda episode: [digest(turn.observation) for turn in episode.turns],
    "history": lambda episode: [
        digest([(turn.observation, turn.action) for turn in episode.turns[:k]], episode.turns[k].observation)
        for k in range(len(episode.turns))
    ],
    "clock": lambda episode: [digest(turn.anchor, k) for k, turn in enumerate(episode.turns)],
}
"""Kind -> the situations of an episode by it: the observation's text; all that was seen and done; the environment's
own anchor and the turn's number."""
OF_CRITIC = frozenset({"value", "contribution"})


def audited_tasks(played: Sequence[PlayedTask], anchors: Sequence[str] = tuple(ANCHORS)) -> list[AuditedTask]:
    """The tasks with their true effects.

    Args:
        anchors: kinds to compare the environment's own anchor with.
    """
    reach = reach_of(played)
    parts = list(dict.fromkeys(name for task in played for turn in task.turns for name in turn.parts))
    return [_audited(task, reach, parts, anchors) for task in played]


def _audited(played: PlayedTask, reach: float, parts: Sequence[str], anchors: Sequence[str]) -> AuditedTask:
    turns = played.turns
    return AuditedTask(
        rollouts=[_rollout(played, episode, parts) for episode in played.episodes],
        effects=effects_of(played, reach),
        starts_K=np.array([turn.start for turn in turns]),
        choices=Choices(
            situations=[turn.anchor for turn in turns],
            actions=[turn.action for turn in turns],
            firsts=[[played.actions[first] for first in played.starts[turn.start].firsts] for turn in turns],
            returns=[np.array(played.starts[turn.start].returns) for turn in turns],
        ),
        anchors={kind: [one for episode in played.episodes for one in ANCHORS[kind](episode)] for kind in anchors},
    )


def _rollout(played: PlayedTask, episode: PlayedEpisode, parts: Sequence[str]) -> Rollout:
    turns = episode.turns
    columns, token_columns = dict[str, list[float]](), dict[str, list[list[float]]]()
    if all(turn.progress is not None for turn in played.turns):
        columns["progress"] = [float(turn.progress or 0.0) for turn in turns]
    if any(start.critic for start in played.starts):
        columns["contribution"] = [_contribution(played, turns, k) for k in range(len(turns))]
        token_columns["value"] = [[_value(played, turn.start)] * turn.tokens for turn in turns]
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


def _value(played: PlayedTask, start: int) -> float:
    return math.fsum(played.starts[start].critic) / len(played.starts[start].critic)


def _contribution(played: PlayedTask, turns: Sequence[PlayedTurn], k: int) -> float:
    """Reward and value after a turn, minus the value before it, as the critic sees them."""
    later = _value(played, turns[k + 1].start) if k + 1 < len(turns) else 0.0
    return turns[k].reward + later - _value(played, turns[k].start)


def _entropy(played: PlayedTask, start: int) -> float:
    """Entropy in nats of the first actions of the continuations."""
    firsts = played.starts[start].firsts
    return -sum(n / len(firsts) * math.log(n / len(firsts)) for n in Counter(firsts).values())
