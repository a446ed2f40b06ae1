"""Goals as tasks, and the splits that keep training and testing apart."""

from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import overload

from manyturn.envs.keys import digest
from manyturn.envs.shop.goals import Goal
from manyturn.envs.shop.official import OfficialShop
from manyturn.envs.task import SPLITS, Task, split_of

_TEST, _VALIDATION = 500, 1000  # goals, in the original's order


class GoalTasks(Sequence[Task]):
    """The tasks of one split, made when asked for.

    Args:
        shop: whose goals they are.
        numbers: the places of the split's goals among them.
        split: its name.
        prefix: of the ids; a goal's place follows.
    """

    def __init__(self, shop: OfficialShop, numbers: array, split: str, prefix: str):
        self._shop, self._numbers, self._split, self._prefix = shop, numbers, split, prefix
        self._members = frozenset(numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self._make(number) for number in self._numbers[index]]
        return self._make(self._numbers[index])

    def find(self, task_id: str) -> Task | None:
        """The task with this id, or None."""
        number = task_id.removeprefix(self._prefix)
        if not task_id.startswith(self._prefix) or not number.isdecimal() or str(int(number)) != number:
            return None
        return self._make(int(number)) if int(number) in self._members else None

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
    numbers = {split: array("i") for split in SPLITS}
    for number, goal in enumerate(shop.goals):
        if original is not None:
            split = "test" if number < _TEST else "validation" if number < _TEST + _VALIDATION else "train"
        else:
            split = split_of(digest("webshop product", goal.product.id))
        numbers[split].append(number)
    source = kind if original is None else f"{kind}-{original}"
    return {s: GoalTasks(shop, found, s, f"{s}/{source}/") for s, found in numbers.items() if found}
