"""Continuations of one task's situations, played in passes until the effects of its turns are exact enough."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.credit.audit.effects import Effects, effects_of_task, half_range, moments
from manyturn.trainers.credit.audit.sampling_budget import Starts, further, uses
from manyturn.trainers.credit_audit.config import AuditConfig
from manyturn.trainers.credit_audit.group_episodes import PlayedTask
from manyturn.trainers.credit_audit.text_player import CRITIC, TRUTH, AuditPlayer, Wish

LEAST = 4  # continuations of every situation in any case: variances of fewer say nothing
_CAUTION = 0.9  # the cost of a continuation is an estimate from the first ones
_TOGETHER = 4096  # continuations that are asked for in one go


def begun(player: AuditPlayer, task: Task, config: AuditConfig, critic: bool) -> PlayedTask:
    """The group and the first continuations of every situation.

    Args:
        critic: play those too that a critic's values are made of.
    """
    played = player.group(task)
    extend(player, task, played, np.full(len(played.starts), LEAST))
    pilot, for_critic = _affordable(played, config, critic)
    extend(player, task, played, np.full(len(played.starts), pilot - LEAST))
    if critic:
        _add_critic(player, task, played, for_critic)
    return played


def _affordable(played: PlayedTask, config: AuditConfig, critic: bool) -> tuple[int, int]:
    """First continuations of every situation, and those for a critic, that the task's share of the steps pays for."""
    both = config.pilot + (config.critic if critic else 0)
    rounds = _CAUTION * config.steps / config.tasks / max(1.0, played.steps / LEAST)
    share = min(1.0, rounds / both)
    return max(LEAST, int(config.pilot * share)), max(2, int(config.critic * share))


def extend(player: AuditPlayer, task: Task, played: PlayedTask, more_C: np.ndarray) -> None:
    """Add so many continuations to each of the C starts."""
    wishes = [
        (start, Wish(start.situation, TRUTH, len(start.returns) + number))
        for start, more in zip(played.starts, more_C.tolist(), strict=True)
        for number in range(more)
    ]
    for part in _parts(wishes):
        for (start, _), one in zip(part, player.continued(task, [wish for _, wish in part]), strict=True):
            start.returns.append(one.counted)
            start.firsts.append(played.number_of(one.first))
            start.steps += one.steps
            played.steps += one.steps


def _add_critic(player: AuditPlayer, task: Task, played: PlayedTask, number: int) -> None:
    """Continuations with random numbers of their own: the errors of a critic are not those of the truth."""
    wishes = [
        (start, Wish(start.situation, CRITIC, m))
        for start in played.starts
        if start.situation.forced is None
        for m in range(number)
    ]
    for part in _parts(wishes):
        for (start, _), one in zip(part, player.continued(task, [wish for _, wish in part]), strict=True):
            start.critic.append(one.total)
            played.steps += one.steps


def _parts(wishes: Sequence) -> Iterator[Sequence]:
    return (wishes[place : place + _TOGETHER] for place in range(0, len(wishes), _TOGETHER))


def reach_of(tasks: Iterable[PlayedTask]) -> float:
    """Half the range of what continuations brought."""
    return half_range(np.array(start.returns) for task in tasks for start in task.starts)


def effects_of(played: PlayedTask, reach: float) -> Effects:
    """The true effects of the K turns of a group, as far as they are known.

    Args:
        reach: of all tasks.
    """
    turns = played.turns
    return effects_of_task(
        [np.array(start.returns) for start in played.starts],
        np.array([turn.start for turn in turns]),
        np.array([turn.after for turn in turns]),
        np.array([0.0 if turn.forced else turn.counted for turn in turns]),
        reach,
    )


def needed(played: PlayedTask, error: float, reach: float, most: int) -> np.ndarray:
    """Further continuations of each start (C) for this root mean square error of the effects."""
    turns = played.turns
    _, variance_C, count_C = moments([np.array(start.returns) for start in played.starts], reach)
    cost_C = np.array([max(1.0, start.steps / len(start.returns)) for start in played.starts])
    uses_C = uses(np.array([turn.start for turn in turns]), np.array([turn.after for turn in turns]), len(count_C))
    return further(Starts(variance_C, count_C, cost_C, uses_C), len(turns), error, most)


def cost_of(played: PlayedTask, more_C: np.ndarray) -> float:
    """Steps that so many further continuations of each start will take."""
    return float(sum(m * start.steps / len(start.returns) for m, start in zip(more_C, played.starts, strict=True)))
