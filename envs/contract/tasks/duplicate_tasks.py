"""Faults of lists of tasks that spoil a whole training: an id with two problems, a problem in two splits."""

import time
from collections.abc import Callable, Mapping, Sequence

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import LazyTasks, Task

_MANY = 2_000  # tasks that are looked at of a split that makes them when asked
_MADE = 20_000  # and of a split that has them already
_SECONDS = 3.0  # for making them


def looked_at(
    tasks: Sequence[Task], split: str, seed: int = 0, on_task: Callable[[], object] = lambda: None
) -> list[Task]:
    """Tasks of a split: all of a list, or 2,000 of a long one.

    Of a long one half are the first, where generators that ignore the split repeat themselves.

    Args:
        seed: decides which others are looked at.
        on_task: called before each task is made.
    """
    most = _MANY if isinstance(tasks, LazyTasks) else _MADE
    if len(tasks) <= most:
        numbers = list(range(len(tasks)))
    else:
        others = generator("sample", seed, split).integers(0, len(tasks), most // 2)
        numbers = list(dict.fromkeys([*range(most // 2), *map(int, others)]))
    stop, sample = time.monotonic() + _SECONDS, list[Task]()
    for number in numbers:
        on_task()
        sample.append(tasks[number])
        if time.monotonic() > stop:
            break
    return sample


def id_fault(tasks: Mapping[str, Sequence[Task]]) -> str | None:
    """Message on an id that names two problems, with the fix; None if there is none.

    Args:
        tasks: split -> its tasks, as far as they are looked at.

    >>> id_fault({"train": [Task("train/0", "train", {"n": 1}), Task("train/0", "train", {"n": 2})]})
    "two tasks with the id 'train/0', both in train: an id names one problem, so number them"
    """
    first: dict[str, tuple[str, Task]] = {}
    for split, of_split in tasks.items():
        for task in of_split:
            where, other = first.setdefault(task.id, (split, task))
            if other.content != task.content:
                places = f"both in {split}" if where == split else f"in {where} and in {split}"
                return f"two tasks with the id {task.id!r}, {places}: an id names one problem, so number them"
    return None


def overlap_fault(tasks: Mapping[str, Sequence[Task]]) -> str | None:
    """Message on problems that belong to two splits by their content, with the fix; None if there are none.

    Args:
        tasks: split -> its tasks, as far as they are looked at.

    >>> one, two = Task("train/0", "train", {"n": 1}), Task("test/7", "test", {"n": 1})
    >>> overlap_fault({"train": [one], "test": [two]}).partition(":")[0]
    'test/7 is the same problem as train/0'
    """
    owner: dict[str, tuple[str, Task]] = {}
    shared: list[tuple[Task, Task]] = []
    for split, of_split in tasks.items():
        for task in of_split:
            first_split, first = owner.setdefault(task.content, (split, task))
            if first_split != split:
                shared.append((task, first))
    if not shared:
        return None
    task, first = shared[0]
    others = [other.id for other, _ in shared[1:]]
    more = ""
    if others:
        more = f", and so {'is' if len(others) == 1 else 'are'} {len(others)} more, such as {', '.join(others[:3])}"
    return (
        f"{task.id} is the same problem as {first.id}{more}: give each problem to one split, such as "
        "manyturn.split_of(task.content), where content is the hash of its params (docs/splits.md)"
    )
