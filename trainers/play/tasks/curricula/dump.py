"""Kinds of tasks by how much they still teach, as in a bandit (DUMP).

    score_l = mean |A| over the last 300 episodes of label l + sqrt(2 ln(N + 1) / (n_l + 1))
    labels are drawn in proportion to exp(score / temperature)      n_l: episodes of l so far, N: all, at least 1

Source: DUMP, arXiv 2504.09710; numbers agree with the authors' code (ZhentingWang/DUMP,
``verl/utils/curriculum_learning.py``).

Implementation:
1. The labels of tasks are their difficulty and first tag, or in a run of several environments these, as the paper's
   distributions; each task of a step draws a new label.
2. |A| is of an episode's mean advantage; each episode of a task counts with the mean over the task's episodes.
3. A label that was never drawn has the largest bonus; the bonus fades as its episodes add up.
4. Inside a label tasks are drawn evenly.

Differences: the paper's unit is the distribution that a sample comes from, here it is the label. The code counts single
samples where 2. counts means of a task; it logs success rates, which are left out.

Watch: ``groups_without_signal`` should fall against the uniform curriculum as labels that teach nothing are left;
``advantage_std`` is what the bandit earns. With advantages divided by their std both say less.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskFeedback, TaskPool
from manyturn.trainers.play.tasks.task_draws import draw_by_label
from manyturn.trainers.play.tasks.task_memory import arm

Memory = Mapping[str, Mapping[str, Any]]


class DumpConfig(StageConfig):
    labels: ClassVar[bool] = True
    name: Literal["dump"] = "dump"
    temperature: float = Field(default=0.1, gt=0)
    """Small values draw the best label nearly always."""
    window: int = Field(default=300, ge=1, le=10_000)
    """Episodes of a label that its mean is over."""


@CURRICULA.register(DumpConfig, remembers=True)
def dump(pool: TaskPool, config: DumpConfig, memory: Memory | None) -> tuple[Sequence[int], Memory]:
    """Numbers of the step's tasks; remembers label -> its number of episodes and the newest |A|.

    >>> from manyturn.envs.contract.tasks.task import Task
    >>> tasks = [Task(str(n), "train", difficulty="easy" if n < 4 else "hard") for n in range(8)]
    >>> taught = {"easy": {"episodes": 99, "recent": [0.0]}, "hard": {"episodes": 99, "recent": [9.0]}}
    >>> sorted(dump(TaskPool(tasks, 4, 0, 1), DumpConfig(), taught)[0])
    [4, 5, 6, 7]
    """
    memory = taught(memory or {}, pool.feedback, config)
    return draw_by_label(pool, lambda labels: scores(labels, memory, config)), memory


def taught(memory: Memory, feedback: Sequence[TaskFeedback], config: DumpConfig) -> dict[str, dict[str, Any]]:
    """The memory with what a step found."""
    new = {label: dict(row) for label, row in memory.items()}
    for task in feedback:
        row = new.setdefault(arm(task.label, new), {"episodes": 0, "recent": []})
        row["episodes"] += task.episodes
        row["recent"] = [*row["recent"], *[task.advantage] * task.episodes][-config.window :]
    return new


def scores(labels: Sequence[str], memory: Memory, config: DumpConfig) -> list[float]:
    """The score of each label, divided by the temperature."""
    total = max(1, sum(row["episodes"] for row in memory.values()))

    def score(label: str) -> float:
        row = memory.get(arm(label, memory), {"episodes": 0, "recent": []})
        mean = sum(row["recent"]) / max(1, len(row["recent"]))
        return (mean + math.sqrt(2 * math.log(total + 1) / (row["episodes"] + 1))) / config.temperature

    return [score(label) for label in labels]
