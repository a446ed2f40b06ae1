"""Checks of the lists of tasks, for which nothing is played."""

import json

from manyturn.envs.conformance.probe_episodes import Subject
from manyturn.envs.conformance.verdicts import Fault, Result
from manyturn.envs.contract.tasks.duplicate_tasks import id_fault, overlap_fault
from manyturn.envs.contract.tasks.task import ListsTasks, Task


def splits(subject: Subject) -> Result:
    """No problem belongs to two splits."""
    tasks_of = {split: subject.many_tasks(split) for split in subject.splits}
    if fault := overlap_fault(tasks_of):
        raise Fault(fault)
    return "tasks compared by content", {split: float(len(tasks)) for split, tasks in tasks_of.items()}


def _plain(task: Task) -> None:
    if not task.params:
        raise Fault(f"task {task.id} has no params: they determine the problem, and splits are compared by them")
    try:
        json.dumps(dict(task.params))
    except TypeError as error:
        raise Fault(f"task {task.id}: {error}; params are numbers, strings, lists and dicts") from error


def tasks(subject: Subject) -> Result:
    """Same id, same problem: unique ids, found again, in another instance too."""
    other = subject.fresh().env.unwrapped
    assert isinstance(other, ListsTasks)
    drawn = {split: subject.many_tasks(split) for split in subject.handle.splits}
    if fault := id_fault(drawn):
        raise Fault(fault)
    count = 0
    for split, listed in drawn.items():
        if not listed:
            raise Fault(f"split {split} has no tasks: leave it out of splits")
        if strays := [task for task in listed if task.split != split]:
            message = f"task {strays[0].id} says that its split is {strays[0].split}"
            raise Fault(f"{message}, but it is listed in split {split}")
        for task in listed[:: max(1, len(listed) // 20)]:
            _plain(task)
            again = other.find(task.id)
            if (again.id, again.split, again.content) != (task.id, task.split, task.content):
                subject.is_changing = True
                raise Fault(f"find({task.id!r}) returns another problem: a task must depend on its id alone")
            count += 1
    return f"{count} tasks found again by id in another instance", {}
