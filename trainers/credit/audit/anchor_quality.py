"""Scores of anchors: does a situation's key come back, and does it forget what decides?

    forgotten = variance of V(s) among the turns of one key / variance of V(s) among the turns of one task

after the sampling error of V has been taken from both. 0: turns of one key are worth the same, so that their returns
can be compared. 1: the key says nothing of what they are worth. A key that never comes back forgets nothing, and leaves
nothing to compare: ``shared`` says how many turns have a companion.
"""

from typing import NamedTuple

import numpy as np

from manyturn.trainers.credit.audit.correlation import Estimate, jackknife
from manyturn.trainers.credit.audit.turn_sample import AuditSample
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK
from manyturn.trainers.credit.groups.anchors import equal_anchors


class AnchorScore(NamedTuple):
    """Scores of one kind of anchor.

    Attributes:
        shared: share of the turns whose situation another turn of the group is in.
        forgotten: share of the spread of values inside a task that is among turns of one situation.
    """

    anchor: str
    shared: float
    forgotten: Estimate


def anchor_scores(sample: AuditSample) -> list[AnchorScore]:
    """Scores of every anchor that the sample has."""
    total_N = _spread_by_task(sample, sample.task_K)
    scores = []
    for kind, anchor_K in sample.anchors.items():
        group_K = equal_anchors(sample.batch.group_K, anchor_K)
        inside_N = _spread_by_task(sample, group_K)
        size_K = np.bincount(group_K)[group_K]
        forgotten = _share(inside_N.sum(), total_N.sum())
        less = zip(inside_N.sum() - inside_N, total_N.sum() - total_N, strict=True)
        less_N = np.array([_share(*one) for one in less])
        ends = np.clip(jackknife(forgotten, less_N), 0, 1)
        scores.append(AnchorScore(kind, float((size_K > 1).mean()), Estimate(forgotten, *map(float, ends))))
    return scores


def _share(inside: float, total: float) -> float:
    return min(1.0, max(0.0, inside / total)) if total > 1e-12 else 0.0


def _spread_by_task(sample: AuditSample, group_K: IntK) -> FloatK:
    """Of each task (N) the sum of squared deviations of V from the mean of its group, less what noise adds.

    Turns of one start have one estimate, so they deviate from each other by nothing.
    """
    value_K, error_K, start_K = sample.effects.value_K, sample.effects.value_error_K, sample.starts_K
    size_K = np.bincount(group_K)[group_K]
    mean_K = (np.bincount(group_K, value_K) / np.maximum(np.bincount(group_K), 1))[group_K]
    pair_K = group_K * (int(start_K.max()) + 1) + start_K
    _, id_K = np.unique(pair_K, return_inverse=True)
    same_K = np.bincount(id_K)[id_K]  # turns of the group that share the estimate
    part_K = (value_K - mean_K) ** 2 - error_K**2 * (1 - same_K / size_K)
    return np.bincount(sample.task_K, part_K).astype(np.float64)
