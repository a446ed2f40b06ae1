"""Variants of MiniWoB++'s tasks, made by seeds that belong to one split each."""

from collections.abc import Sequence

from manyturn.envs.contract.task import LazyTasks, Task

# Split -> first seed, and number of seeds for each task.
SEEDS = {"train": (0, 1_000_000), "validation": (1_000_000, 10_000), "test": (2_000_000, 10_000)}


class Variants(LazyTasks):
    """The tasks of a split: the first variant of each name, then the second of each, and so on.

    Args:
        split: train, validation or test.
        names: of MiniWoB++'s tasks.
    """

    def __init__(self, split: str, names: Sequence[str]):
        self._split, self._names = split, tuple(names)
        self._first, self._count = SEEDS[split]

    def __len__(self) -> int:
        return self._count * len(self._names)

    def task_at(self, place: int) -> Task:
        number, name = divmod(place, len(self._names))
        return self._make(self._names[name], number)

    def find(self, task_id: str) -> Task | None:
        """The task with this id, such as ``test/click-button/7``, or None."""
        split, _, rest = task_id.partition("/")
        name, _, number = rest.rpartition("/")
        if split != self._split or name not in self._names or not number.isdecimal() or str(int(number)) != number:
            return None
        return self._make(name, int(number)) if int(number) < self._count else None

    def _make(self, name: str, number: int) -> Task:
        params = {"task": name, "seed": self._first + number}
        return Task(f"{self._split}/{name}/{number}", self._split, params, tags=(name,))
