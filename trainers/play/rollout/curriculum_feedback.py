"""Feedback of a step on the tasks that it played, for the next step's curriculum."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.agents.play.role_episodes import ONLY_ROLE, EpisodeRoles, group_name
from manyturn.trainers.credit.pipeline import Credit
from manyturn.trainers.play.rollout.rollout_batch import learnable
from manyturn.trainers.play.tasks.curriculum_input import TaskFeedback, label_of

Taught = tuple[float, bool]


def findings(
    episodes: Sequence[Episode],
    numbers: Mapping[str, int],
    earned: Sequence[Credit],
    roles: EpisodeRoles = ONLY_ROLE,
) -> list[TaskFeedback]:
    """One entry for each task of which an episode could be scored and says whether it reached the goal.

    Args:
        episodes: all that were played, whether they were learnt from or not.
        numbers: id of a task -> its place in the split.
        earned: the credit of those that were learnt from, of each policy; other tasks have taught nothing.
        roles: of an episode; a task has taught what it taught those that learn in the mean.
    """
    lessons, groups = dict[str, Taught](), defaultdict[str, list[Episode]](list)
    for credit in earned:
        lessons |= _lessons(credit)
    for episode in learnable(episodes):
        if episode.success is not None and not np.isnan(episode.outcome):
            groups[episode.task.id].append(episode)
    feedback = []
    for task, members in groups.items():
        taught = [lessons.get(group_name(task, role, roles.all), (0.0, False)) for role in roles.learning]
        advantage, signal = float(np.mean([mean for mean, _ in taught])), any(signal for _, signal in taught)
        success, score = np.mean([(bool(e.success), e.outcome) for e in members], axis=0).tolist()
        label = label_of(members[0].task)
        feedback.append(TaskFeedback(numbers[task], label, success, score, advantage, signal, len(members)))
    return feedback


def _lessons(earned: Credit) -> dict[str, Taught]:
    """Group -> mean over its scorable episodes of |mean advantage of a turn|, and whether their scores differed."""
    batch, score_K = earned.batch, earned.batch.score_K()
    advantage_E = np.abs(np.bincount(batch.episode_K, earned.advantage_K) / np.bincount(batch.episode_K))
    lessons = {}
    for group, name in batch.group_names.items():
        rows = np.flatnonzero((batch.group_K == group) & batch.scorable_K)
        if len(rows):
            mean = advantage_E[np.unique(batch.episode_K[rows])].mean()
            lessons[name] = (float(mean), bool(np.ptp(score_K[rows]) > 0))
    return lessons
