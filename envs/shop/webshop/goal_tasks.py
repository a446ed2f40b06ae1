"""Goals as tasks, and the splits that keep training and testing apart."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from manyturn.envs.contract.tasks.task import LazyTasks, Task
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.webshop.official_shop import OfficialShop


class GoalTasks(LazyTasks):
    """The tasks of one split, made when asked for.

    Args:
        shop: whose goals they are.
        numbers: the places of the split's goals among them, ascending.
        split: its name.
        prefix: of the ids; a goal's place follows.
    """

    def __init__(self, shop: OfficialShop, numbers: Sequence[int] | NDArray[np.int32], split: str, prefix: str):
        self._shop, self._numbers, self._split, self._prefix = shop, numbers, split, prefix

    def __len__(self) -> int:
        return len(self._numbers)

    def task_at(self, place: int) -> Task:
        return self._make(int(self._numbers[place]))

    def find(self, task_id: str) -> Task | None:
        number = task_id.removeprefix(self._prefix)
        if not task_id.startswith(self._prefix) or not number.isdecimal() or str(int(number)) != number:
            return None
        place = bisect_left(self._numbers, int(number))
        here = place < len(self._numbers) and self._numbers[place] == int(number)
        return self._make(int(number)) if here else None

    def _make(self, number: int) -> Task:
        goal = self._shop.goals[number]
        params = {
            "files": self._shop.sha256,
            "product": goal.product.id,
            "instruction": goal.instruction,
            "attributes": goal.attributes,
            "options": goal.options,
            "price_limit": goal.price_limit,
        }
        return Task(f"{self._prefix}{number}", self._split, params, None, (goal.product.department,))


def goal_of(shop: OfficialShop, task: Task) -> Goal:
    """The goal that a task stands for. Raises ValueError if the files have changed since the task was made."""
    if task.params["files"] != shop.sha256:
        raise ValueError(f"the files have changed since task {task.id} was made: restore them or list the tasks again")
    return shop.goals[int(task.id.rpartition("/")[2])]


@lru_cache(maxsize=8)
def tasks_of(shop: OfficialShop, kind: str, original: int | None) -> Mapping[str, GoalTasks]:
    """Split -> tasks, for the splits that have any.

    The original's splits follow the order of the goals: one product's goals may lie in all of them. Ours follow the
    product.
    """
    source = kind if original is None else f"{kind}-{original}"
    splits = shop.splits.items()
    return {split: GoalTasks(shop, places, split, f"{split}/{source}/") for split, places in splits if len(places)}
