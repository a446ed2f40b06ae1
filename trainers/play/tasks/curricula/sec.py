"""Kinds of tasks by how much they taught of late, as in a bandit that forgets (SEC).

    Q_l <- Q_l + rate (mean |A| over the step's tasks of label l - Q_l)        Q_l = 0 at first
    labels are drawn in proportion to exp(Q_l / temperature)

Source: Self-Evolving Curriculum, arXiv 2505.14970: TD(0) and Boltzmann sampling.

Implementation:
1. The labels of tasks are their difficulty and first tag, or in a run of several environments these, as the paper's
   categories; each task of a step draws a new label.
2. |A| is of an episode's mean advantage, a mean over the task's episodes.
3. Labels that a step did not play keep their Q.
4. Inside a label tasks are drawn evenly.

Differences: there is no public code; rate and temperature are ours. With advantages of one scale, and success as the
only reward, mean |A| is largest where success is a toss, which is what the paper is after.

Watch: ``groups_without_signal`` should fall against the uniform curriculum; ``advantage_std`` is what the bandit earns.
``success`` of a step follows the labels that are drawn: held-out success shows learning.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskPool
from manyturn.trainers.play.tasks.task_draws import draw_by_label
from manyturn.trainers.play.tasks.task_memory import arm


class SecConfig(StageConfig):
    labels: ClassVar[bool] = True
    name: Literal["sec"] = "sec"
    rate: float = Field(default=0.5, gt=0, le=1)
    """Weight of the newest step against what is remembered."""
    temperature: float = Field(default=0.2, gt=0)
    """Small values draw the best label nearly always."""


@CURRICULA.register(SecConfig, remembers=True)
def sec(
    pool: TaskPool, config: SecConfig, memory: Mapping[str, float] | None
) -> tuple[Sequence[int], dict[str, float]]:
    """Numbers of the step's tasks; remembers label -> Q.

    >>> from manyturn.envs.contract.tasks.task import Task
    >>> tasks = [Task(str(n), "train", difficulty="easy" if n < 4 else "hard") for n in range(8)]
    >>> drawn, memory = sec(TaskPool(tasks, 4, 0, 1), SecConfig(temperature=0.01), {"easy": 0.0, "hard": 0.75})
    >>> sorted(drawn), memory
    ([4, 5, 6, 7], {'easy': 0.0, 'hard': 0.75})
    """
    values_before = dict(memory or {})
    earned = defaultdict[str, list[float]](list)
    for feedback in pool.feedback:
        earned[arm(feedback.label, {**values_before, **earned})].append(feedback.advantage)
    for label, values in earned.items():
        before = values_before.get(label, 0.0)
        values_before[label] = before + config.rate * (sum(values) / len(values) - before)
    return draw_by_label(
        pool, lambda labels: [values_before.get(arm(n, values_before), 0.0) / config.temperature for n in labels]
    ), values_before
