"""Steps that teach nothing, and why: a run of them looks busy and learns nothing.

A step has a signal if some policy has an advantage other than 0 and a gradient other than 0. Regularisers may move the
weights without it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.play.rollout.rollout_batch import is_learnable
from manyturn.trainers.run.step.policy_update import PolicyUpdate

SILENT_STEPS = 3  # in a row, from which the run says so
_LEAST = 1e-9  # an advantage below it is rounding

_FIXES = {
    "every reply was invalid": "look at the replies in the report, and at agent.format",
    "every episode failed": "begin with a policy that sometimes succeeds, by a longer warm-up or a better model, or "
    "take easier tasks",
    "every episode succeeded": "take harder tasks, or end the run",
    "parts of the reward cancel each other": "leave one of the parts out, or weigh them differently",
    "the episodes of each group earn the same": "take tasks at which episodes differ, or larger groups",
    "advantages are there, but every token is left out or clipped": "look at objective.reject and at the clip",
}


class NoSignal(LearningFailed):
    """As many steps in a row taught nothing as ``stopping.no_signal`` allows."""


def no_signal(updates: Sequence[PolicyUpdate], episodes: Sequence[Episode], metrics: Mapping[str, Any]) -> str | None:
    """The reason why a step taught nothing; None if it taught something.

    Args:
        episodes: all that were played.
        metrics: of the step's updates, with each policy's ``grad_norm``.
    """
    moved = [value for name, value in metrics.items() if name.rpartition("/")[2] == "grad_norm"]
    if any(np.abs(update.credit.advantage_T).max(initial=0.0) > _LEAST for update in updates):
        return None if any(moved) else "advantages are there, but every token is left out or clipped"
    scored = [episode for episode in episodes if is_learnable(episode)]
    turns = [turn for episode in scored for turn in episode.turns]
    if turns and not any(turn.format_valid and turn.understood for turn in turns):
        return "every reply was invalid"
    if any(_parts_cancel(update) for update in updates):
        return "parts of the reward cancel each other"
    successes = {episode.success for episode in scored}
    if successes == {False}:
        return "every episode failed"
    if successes == {True}:
        return "every episode succeeded"
    return "the episodes of each group earn the same"


def warning(first: int, last: int, reason: str) -> str:
    """The sentence about steps in a row that taught nothing."""
    return f"steps {first} to {last} taught nothing: {reason}; {_FIXES[reason]}"


def _parts_cancel(update: PolicyUpdate) -> bool:
    """True if a part of the reward differs between episodes of some group, and no return does."""
    batch = update.step.batch
    group_E = batch.group_K[np.unique(batch.episode_K, return_index=True)[1]]
    sums = [np.bincount(batch.episode_K, part_K) for part_K in (*batch.parts.values(), batch.reward_K)]
    *parts, returns = ([np.ptp(sum_E[group_E == group]) > _LEAST for group in set(group_E.tolist())] for sum_E in sums)
    return any(map(any, parts)) and not any(returns)
