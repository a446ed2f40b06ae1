"""First difference between two plays of one episode, in words."""

from collections.abc import Collection, Sequence
from typing import Any

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer

_SHOWN = 60  # characters of a text


def difference(task: Task, one: Sequence[Answer], two: Sequence[Answer], but: Collection[str] = ()) -> str | None:
    """The first thing in which two plays of a task with the same actions differ; None if they are the same.

    Args:
        but: fields of an answer that may differ.

    >>> task = Task("train/3", "train")
    >>> difference(task, [Answer("A room."), Answer("7 doors.")], [Answer("A room."), Answer("9 doors.")])
    "task train/3, turn 1: observation '7 doors.' against '9 doors.'"
    >>> difference(task, [Answer("", float("nan"))], [Answer("", float("nan"))]) is None
    True
    """
    for turn, (a, b) in enumerate(zip(one, two, strict=False)):
        for name in Answer._fields:
            if name not in but and not _same(left := getattr(a, name), right := getattr(b, name)):
                return f"task {task.id}, turn {turn}: {name} {' against '.join(_parting(left, right))}"
    if len(one) != len(two):
        return f"task {task.id}: {len(one) - 1} turns against {len(two) - 1}"
    return None


def _same(left: Any, right: Any) -> bool:
    return left == right or repr(left) == repr(right)  # NaN is not equal to itself


def _parting(left: Any, right: Any) -> tuple[str, str]:
    """Both values, texts from shortly before the place where they part."""
    if not isinstance(left, str) or not isinstance(right, str):
        return f"{left!r:.{_SHOWN}}", f"{right!r:.{_SHOWN}}"
    parts = next((place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    begin = max(0, parts - _SHOWN // 2) if max(len(left), len(right)) > _SHOWN else 0
    shown = (text[begin : begin + _SHOWN] for text in (left, right))
    first, second = (f"{'…' if begin else ''}{text!r}" for text in shown)
    return first, second
