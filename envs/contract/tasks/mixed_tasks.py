"""Tasks of several environments in one list, for a run that trains one policy in all of them.

The id of a task begins with the name of its environment, so that two environments may number their tasks alike: groups
and anchors are compared within a task, and never mix environments. Its content stays that of the environment's own
task, by which an evaluation in one environment recognises what was learnt from.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from manyturn.envs.contract.tasks.task import LazyTasks, Task, task_finder


def mixed_task(task: Task, env: str) -> Task:
    """A task of an environment as a run of several has it.

    >>> mixed_task(Task("train/0", "train"), "maze").id
    'maze/train/0'
    """
    return replace(task, id=f"{env}/{task.id}", env=env)


def own_task(task: Task) -> Task:
    """The task as its environment has it; inverse of ``mixed_task``.

    >>> own_task(mixed_task(Task("train/0", "train"), "maze"))
    Task(id='train/0', split='train', params={}, difficulty=None, tags=(), env=None)
    """
    return replace(task, id=task.id.removeprefix(f"{task.env}/"), env=None)


class MixedTasks(LazyTasks):
    """The tasks of one split of several environments, one environment after the other.

    Args:
        tasks: name of each environment -> its tasks of the split.
    """

    def __init__(self, tasks: Mapping[str, Sequence[Task]]):
        self._tasks = dict(tasks)
        self._ends = list(accumulate(map(len, self._tasks.values())))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def task_at(self, place: int) -> Task:
        number = bisect_right(self._ends, place)
        env = list(self._tasks)[number]
        first = self._ends[number] - len(self._tasks[env])
        return mixed_task(self._tasks[env][place - first], env)

    def find(self, task_id: str) -> Task | None:
        for env, tasks in self._tasks.items():
            if task_id.startswith(f"{env}/"):
                task = task_finder(tasks)(task_id.removeprefix(f"{env}/"))
                if task is not None:
                    return mixed_task(task, env)
        return None

    def numbers(self) -> dict[str, range]:
        """Name of each environment -> the places of its tasks."""
        sizes = {env: len(tasks) for env, tasks in self._tasks.items()}
        return {env: range(end - size, end) for (env, size), end in zip(sizes.items(), self._ends, strict=True)}


def numbers_by_env(tasks: Sequence[Task]) -> dict[str | None, Sequence[int]]:
    """Name of each environment -> the places of its tasks, without making the tasks of a long list.

    >>> numbers_by_env([Task("a/0", "train", env="a"), Task("b/0", "train", env="b"), Task("a/1", "train", env="a")])
    {'a': [0, 2], 'b': [1]}
    """
    if isinstance(tasks, MixedTasks):
        return {**tasks.numbers()}
    if isinstance(tasks, LazyTasks):
        return {None: range(len(tasks))}
    places: dict[str | None, list[int]] = {}
    for place, task in enumerate(tasks):
        places.setdefault(task.env, []).append(place)
    return {**places}


def apportioned(count: int, weights: Sequence[float], rng: np.random.Generator) -> list[int]:
    """Shares of a number by weight, whole numbers that sum to it: each is its exact share rounded up or down, and the
    exact one in the mean over draws (systematic sampling).

    >>> apportioned(8, [2.0, 1.0, 1.0], np.random.default_rng(0))
    [4, 2, 2]
    """
    ends = np.cumsum(weights) / np.sum(weights) * count
    ends[-1] = count  # a sum of floats may miss it
    return np.diff(np.floor(np.append(0.0, ends) + rng.random()).astype(int)).tolist()
