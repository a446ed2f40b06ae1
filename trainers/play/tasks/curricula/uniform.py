"""Every task equally often: each pass over the split is a new permutation, so none comes twice before all have come.

    task of place n = permutation_e[n mod size]        e = floor(n / size),  n = (step - 1) tasks + 0, 1, 2 ...

Implementation:
1. What a step draws depends on seed and step alone, not on what was drawn before.
2. Splits too long to permute are drawn from independently in each step. So are further rounds of one step, which take
   nothing from the order of the passes.

Differences: no paper's method; what most trainers do.

Watch: ``groups_without_signal`` is the share of the step's episodes that a curriculum could put to better use.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskPool
from manyturn.trainers.play.tasks.task_draws import distinct

LONG = 100_000


class UniformConfig(StageConfig):
    chooses: ClassVar[bool] = False
    name: Literal["uniform"] = "uniform"


@CURRICULA.register(UniformConfig)
def uniform(pool: TaskPool, config: UniformConfig) -> Sequence[int]:
    """Numbers of the step's tasks; it depends on the step alone, not on what was drawn before.

    >>> from manyturn.envs.contract.tasks.task import Task
    >>> tasks = [Task(str(n), "train") for n in range(4)]
    >>> sorted(n for step in (1, 2) for n in uniform(TaskPool(tasks, 2, 0, step), UniformConfig()))
    [0, 1, 2, 3]
    """
    size = len(pool.tasks)
    if pool.taken:
        return distinct(pool.generator(), size, pool.count, pool.taken)
    if size > LONG:
        return pool.generator_of("tasks", pool.step).choice(size, size=pool.count, replace=False).tolist()
    drawn, orders = [], dict[int, list[int]]()
    first = (pool.step - 1) * pool.count if pool.drawn is None else pool.drawn
    for place in range(first, first + pool.count):
        epoch, index = divmod(place, size)
        if epoch not in orders:
            orders[epoch] = pool.generator_of("tasks", epoch).permutation(size).tolist()
        drawn.append(orders[epoch][index])
    return drawn
