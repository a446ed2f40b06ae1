"""Drift: how far the policy has moved since a task was last played, by which SPO forgets what it once earned there.

    D_g = mean over the reply tokens of task g's previous episodes of |log-probability when drawn - log-probability now|

"Now" is before the step's update. What is remembered of a task are the tokens of its last episodes, plain values, for
they are part of a checkpoint; beyond two million tokens the tasks longest unplayed are forgotten, and begin anew.
Source: Single-stream Policy Optimization, arXiv 2509.13232. Its authors take the learner's log-probability at the time
for what is here the engine's; where an engine of another precision draws, its error is part of the drift.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.agents.episode import Episode
from manyturn.trainers.learn.samples import Sample

Branch = Sequence[Any]  # its ids, the places of those that were said, and their log-probabilities when drawn
Visits = Mapping[str, Sequence[Branch]]
MOST_TOKENS = 2_000_000


def drift(
    visits: Visits, tasks: Collection[str], logprobs: Callable[[Sequence[Sample]], Sequence[np.ndarray]]
) -> dict[str, float]:
    """D of each task that was played before.

    Args:
        visits: what ``visited`` returned last time.
        logprobs: log-probability now of each token that was said, one array for each sample.
    """
    owners = [task for task in tasks for _ in visits.get(task, ())]
    samples = [_sample(branch) for task in tasks for branch in visits.get(task, ())]
    moved: dict[str, list[np.ndarray]] = {task: [] for task in owners}
    for task, sample, now in zip(owners, samples, logprobs(samples) if samples else (), strict=True):
        moved[task].append(np.abs(sample.engine_logprob[sample.said] - now))
    return {task: float(np.concatenate(rows).mean()) for task, rows in moved.items()}


def visited(visits: Visits, episodes: Sequence[Episode], most: int = MOST_TOKENS) -> dict[str, list[list[Any]]]:
    """What to remember after these episodes: of their tasks these alone, of other tasks what was known.

    Args:
        most: tokens that are remembered.
    """
    news: dict[str, list[list[Any]]] = {}
    for episode in episodes:
        assert episode.ledger is not None, "only episodes with a token ledger can be learnt from"
        for branch in episode.ledger.branches:
            places = np.flatnonzero(branch.said).tolist()
            row = [list(branch.ids), places, [branch.logprobs[place] for place in places]]
            news.setdefault(episode.key.task, []).append(row)
    kept = {task: [list(row) for row in rows] for task, rows in visits.items() if task not in news} | news
    tokens = sum(len(ids) for rows in kept.values() for ids, *_ in rows)
    for task in list(kept):
        if tokens <= most:
            break
        tokens -= sum(len(ids) for ids, *_ in kept.pop(task))
    return kept


def _sample(branch: Branch) -> Sample:
    ids, places, logprobs = branch
    said, drawn = np.zeros(len(ids), bool), np.zeros(len(ids))
    said[places], drawn[places] = True, logprobs
    return Sample(0, np.array(ids), said, np.zeros(len(ids)), drawn)
