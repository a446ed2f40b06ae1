"""Draw of a step's tasks in a run of several environments: each has its share by weight, and a curriculum of its own.

A curriculum that prefers some tasks to others (``band``, ``mopps``, ``pcl``, ``spo_weights``) compares the tasks of one
environment and remembers them apart, so that an easy environment does not take the place of a hard one. One that
chooses between kinds of tasks (``dump``, ``sec``) chooses between the environments, and weights do not count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import overload

from manyturn.envs.contract.options.registry import Memory
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.mixed_tasks import apportioned, numbers_by_env
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskPool


class TaskPart(Sequence[Task]):
    """Some tasks of a longer list, which are made when asked for.

    Args:
        tasks: the list.
        numbers: places in it.
    """

    def __init__(self, tasks: Sequence[Task], numbers: Sequence[int]):
        self._tasks, self.numbers = tasks, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self._tasks[number] for number in self.numbers[index]]
        return self._tasks[self.numbers[index]]


def drawn_tasks(
    config: StageConfig, memory: Memory, pool: TaskPool, weights: Mapping[str, float]
) -> tuple[list[int | Task], Memory]:
    """Numbers of the tasks that a step plays, with new tasks among them, and what the curriculum remembers.

    Args:
        weights: of the environments, where there are several.
    """
    if not weights or config.labels:
        drawn, memory = CURRICULA.apply_remembering(config, memory, replace(pool, is_mixed=bool(weights)))
        return [one if isinstance(one, Task) else int(one) for one in drawn], memory
    numbers = numbers_by_env(pool.tasks)
    present = [env for env in numbers if env is not None]
    rng = generator("environments", pool.seed, pool.step, len(pool.taken))
    shares, drawn = apportioned(pool.count, [weights[env] for env in present], rng), list[int | Task]()
    for env, share in zip(present, shares, strict=True):
        part = TaskPart(pool.tasks, numbers[env])
        own = {"drawn": 0, **memory.get(_place(env), {})}
        chosen, own = CURRICULA.apply_remembering(config, own, _part_of(pool, part, env, share, own["drawn"]))
        drawn += [one if isinstance(one, Task) else part.numbers[int(one)] for one in chosen]
        memory = {**memory, _place(env): {**own, "drawn": own["drawn"] + share}}
    return drawn, memory


def _part_of(pool: TaskPool, part: TaskPart, env: str, share: int, drawn: int) -> TaskPool:
    """The pool of one environment, in the numbers of its own tasks; grown ones keep theirs, which are larger."""
    numbers, grown = part.numbers, {n: task for n, task in pool.grown.items() if task.env == env}
    own_feedback = [one._replace(number=numbers.index(one.number)) for one in pool.feedback if one.number in numbers]
    return replace(
        pool,
        tasks=part,
        count=share,
        feedback=[*own_feedback, *(one for one in pool.feedback if one.number in grown)],
        taken=frozenset(numbers.index(number) for number in pool.taken if number in numbers),
        env=env,
        drawn=drawn,
        grown=grown,
    )


def _place(env: str) -> str:
    return f"curriculum of {env}"
