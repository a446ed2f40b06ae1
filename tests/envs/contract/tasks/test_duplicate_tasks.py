"""Tasks in two splits, or two under one id, must be found before a training rests on them."""

import pytest

from manyturn.envs.contract.tasks.duplicate_tasks import id_fault, looked_at, overlap_fault
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task

pytestmark = pytest.mark.versions


def generated(split: str, first: int, size: int = 10**6) -> GeneratedTasks:
    return GeneratedTasks(lambda i: Task(f"{split}/{i}", split, {"n": first + i}), size, prefix=f"{split}/")


def test_problems_in_two_splits_are_named_with_their_ids_and_counted():
    found = {split: looked_at(generated(split, first, 10), split) for split, first in (("train", 0), ("test", 8))}
    assert overlap_fault(found) == (
        "test/0 is the same problem as train/8, and so is 1 more, such as test/1: give each problem to one split, such "
        "as manyturn.split_of(task.content), where content is the hash of its params (docs/splits.md)"
    )
    assert overlap_fault({split: tasks[:8] for split, tasks in found.items()}) is None


def test_an_id_with_two_problems_is_named_across_splits_and_within_one():
    one, two = Task("7", "train", {"n": 1}), Task("7", "test", {"n": 2})
    fix = "an id names one problem, so number them"
    assert id_fault({"train": [one], "test": [two]}) == f"two tasks with the id '7', in train and in test: {fix}"
    assert id_fault({"train": [one, two]}) == f"two tasks with the id '7', both in train: {fix}"
    assert id_fault({"train": [one, one]}) is None


def test_long_splits_that_repeat_each_other_are_found_without_making_all_their_tasks():
    made = 0

    def count() -> None:
        nonlocal made
        made += 1

    found = {split: looked_at(generated(split, 0), split, on_task=count) for split in ("train", "validation")}
    assert "validation/0 is the same problem as train/0" in str(overlap_fault(found))
    assert made <= 4_000


def test_a_list_is_looked_at_as_a_whole():
    tasks = {"train": [Task(f"train/{i}", "train", {"n": i}) for i in range(5000)]}
    tasks["test"] = [Task("test/0", "test", {"n": 4321})]
    fault = overlap_fault({split: looked_at(listed, split) for split, listed in tasks.items()})
    assert fault is not None and fault.startswith("test/0 is the same problem as train/4321:")
