"""Tasks: what an environment can be asked to do, and the splits that keep training and testing apart."""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, overload, runtime_checkable

from manyturn.envs.contract.random_keys import digest

SPLITS = ("train", "validation", "test")
GROWN = "grown/"
"""The ids of tasks that were made by varying others begin with it; their content follows."""
Direction = Literal["harder", "easier"]


@dataclass(frozen=True)
class Task:
    """One problem. The same id is the same problem for ever.

    Args:
        id: unique within the environment, such as ``"test/easy/17"``.
        split: the split that it belongs to.
        params: everything that determines the problem, as plain values (numbers, strings, lists, dicts).
        difficulty: name of the difficulty level, if the environment has levels.
        tags: labels for tables, such as the kind of goal.
        env: the name of its environment in a run of several, which its id then begins with; None where there is one.
    """

    id: str
    split: str
    params: Mapping[str, Any] = field(default_factory=dict)
    difficulty: str | None = None
    tags: tuple[str, ...] = ()
    env: str | None = None

    @cached_property
    def content(self) -> str:
        """Hash of what determines the problem: two tasks with one content are one problem under two names."""
        return digest(self.params)


@runtime_checkable
class ListsTasks(Protocol):
    """An environment that says which tasks there are: every ``TextEnv``, and a plain one that has these."""

    splits: tuple[str, ...]

    def tasks(self, split: str) -> Sequence[Task]: ...
    def find(self, task_id: str) -> Task: ...


class LazyTasks(Sequence[Task], abc.ABC):
    """A list of tasks that are made when asked for; override ``__len__``, ``task_at`` and ``find``."""

    @abc.abstractmethod
    def task_at(self, place: int) -> Task:
        """The task at a place from 0 to below the length."""

    @abc.abstractmethod
    def find(self, task_id: str) -> Task | None:
        """The task with this id, or None, without making the others."""

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self.task_at(place) for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"task {index} of {len(self)}")
        return self.task_at(index % len(self))


class GeneratedTasks(LazyTasks):
    """A long list of tasks that are made from their numbers.

    Args:
        make: number -> task; must depend on the number alone and give the id ``f"{prefix}{number}"``.
        size: how many tasks there are.
        prefix: prefix of the number in an id.
    """

    def __init__(self, make: Callable[[int], Task], size: int, prefix: str):
        self._make, self._size, self._prefix = make, size, prefix

    def __len__(self) -> int:
        return self._size

    def task_at(self, place: int) -> Task:
        return self._make(place)

    def find(self, task_id: str) -> Task | None:
        number = task_id.removeprefix(self._prefix)
        if task_id.startswith(self._prefix) and number.isdecimal() and str(int(number)) == number:
            return self._make(int(number)) if int(number) < self._size else None
        return None


def task_finder(tasks: Sequence[Task]) -> Callable[[str], Task | None]:
    """Lookup of tasks by id, which makes no others; None for an id that none has."""
    return getattr(tasks, "find", None) or {task.id: task for task in tasks}.get


def split_of(content: str, shares: Mapping[str, float] | None = None) -> str:
    """The one split that a content hash belongs to, so that generated splits are disjoint by construction.

    Args:
        content: hexadecimal hash, ``Task.content``.
        shares: split -> share; default 80 % train, 10 % validation, 10 % test.
    """
    shares = shares or {"train": 0.8, "validation": 0.1, "test": 0.1}
    point = int(digest("split", content)[:12], 16) / 16**12 * sum(shares.values())
    for name, share in shares.items():
        point -= share
        if point < 0:
            return name
    return list(shares)[-1]  # rounding left a hair


def is_held_out(*structure: Any) -> bool:
    """True for a fifth of all structures, such as layouts or recipes: only the split ``test_unseen`` has them.

    Args:
        structure: plain values.
    """
    return split_of(digest("structure", structure), {"usual": 0.8, "unseen": 0.2}) == "unseen"


def params_of_split(draw: Callable[[], dict[str, Any]], split: str) -> dict[str, Any]:
    """The first parameters drawn of which the content belongs to a split; to another than ``SPLITS`` all do.

    Raises:
        RuntimeError: 10,000 draws gave none, so the draws differ too little.
    """
    for _ in range(10_000):
        params = draw()
        if split not in SPLITS or split_of(digest(params)) == split:
            return params
    raise RuntimeError(f"none of 10,000 problems belongs to {split}: draw from more")
