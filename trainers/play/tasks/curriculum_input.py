"""Input of a curriculum: the tasks of a split, and the last step's feedback on those it played."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.contract.options.registry import Registry
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Direction, Task


class TaskFeedback(NamedTuple):
    """Feedback of a step on one task; plain values, because it is part of a checkpoint.

    Attributes:
        number: place of the task in the split.
        label: of the task.
        success: share of its episodes that reached the goal.
        score: mean return of its episodes.
        advantage: mean over its episodes of |mean advantage of a turn|.
        signal: whether its episodes' scores differed.
        episodes: how many there were; those that could not be scored are not counted.
    """

    number: int
    label: str
    success: float
    score: float
    advantage: float
    signal: bool
    episodes: int


@dataclass(frozen=True, eq=False)
class TaskPool:
    """Tasks to draw from. A split may have a million, each made when it is asked for: ask for few.

    Attributes:
        tasks: the split that may be learnt from.
        count: how many to draw.
        seed: of the run.
        step: the step that they are for, from 1.
        feedback: what the last step found, an entry for each task that it played; it is given once.
        taken: numbers that the step has drawn already.
        env: the environment that the tasks are of, in a run of several; None where all are here, or there is one.
        is_mixed: the tasks are of several environments, between which a curriculum of kinds chooses.
        drawn: how many tasks earlier steps drew, where that is not the same number each time.
        grown: tasks that curricula have made, by their numbers, as far as feedback may speak of them.
        vary: a harder or an easier task than a training task; None where the environment varies none.
    """

    tasks: Sequence[Task]
    count: int
    seed: int
    step: int
    feedback: Sequence[TaskFeedback] = ()
    taken: frozenset[int] = frozenset()
    env: str | None = None
    is_mixed: bool = False
    drawn: int | None = None
    grown: Mapping[int, Task] = field(default_factory=dict)
    vary: Callable[[Task, Direction, np.random.Generator], Task | None] | None = None

    def __post_init__(self) -> None:
        if not len(self.tasks):
            raise ValueError("the training split has no task: let the environment's tasks('train') give some")

    def task(self, number: int) -> Task:
        """The task of a number, be it of the split or grown."""
        return self.grown[number] if number in self.grown else self.tasks[number]

    def generator(self) -> np.random.Generator:
        """The randomness of this draw."""
        return self.generator_of("curriculum", self.step, len(self.taken))

    def generator_of(self, use: str, *numbers: int) -> np.random.Generator:
        """Randomness for a use, the run's own, and the environment's where there are several."""
        return generator(use, *filter(None, (self.env,)), self.seed, *numbers)


def label_of(task: Task) -> str:
    """The kind of a task: difficulty and first tag, as far as there are any; in a run of several environments, its own.

    >>> label_of(Task("train/7", "train", difficulty="easy", tags=("clean", "kitchen"))), label_of(Task("7", "train"))
    ('easy clean', '')
    """
    if task.env is not None:
        return task.env
    return " ".join([*([task.difficulty] if task.difficulty else []), *task.tags[:1]])


def plain_task(task: Task) -> dict[str, Any]:
    """A task as JSON values, for memories and checkpoints."""
    plain = {field.name: getattr(task, field.name) for field in fields(task)}
    return {**plain, "tags": list(task.tags), "params": dict(task.params)}


def task_of_plain(plain: Mapping[str, Any]) -> Task:
    """Inverse of ``plain_task``."""
    return Task(**{**plain, "tags": tuple(plain["tags"])})


CURRICULA: Registry[Sequence[int | Task]] = Registry("curriculum", "manyturn.trainers.play.tasks.curricula")
