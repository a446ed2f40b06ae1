"""Tasks are in the splits that AppWorld's lists put them in, and an id is never a way out of the folder."""

import shutil

import pytest

from manyturn.envs.benchmarks.appworld.data import Data
from manyturn.envs.contract.registration.env_registry import NeedsSetup


def test_splits_are_the_lists_of_the_data(root):
    data = Data(root)
    splits = {split: [task.id for task in tasks] for split, tasks in data.tasks.items()}
    assert splits == {"train": ["one_1", "one_2"], "validation": ["two_1"], "test": ["endless_1"], "test_challenge": []}
    assert list(data.absent) == ["test_challenge"]
    assert all(task.split == split for split, tasks in data.tasks.items() for task in tasks)


def test_scenarios_are_tags_and_no_instruction_is_kept(root):
    (first, second), *_ = Data(root).tasks.values()
    assert first.tags == second.tags == ("one",) and first.difficulty == "2"
    assert first.params == {"task": "one_1"} and first.content != second.content


def test_a_difficulty_that_cannot_be_read_decides_nothing(root):
    shutil.rmtree(root / "data" / "tasks" / "one_1" / "ground_truth")
    (root / "data" / "tasks" / "one_2" / "ground_truth" / "metadata.json").write_text('{"difficulty": "?"}')
    assert [task.difficulty for task in Data(root).tasks["train"]] == [None, None]


@pytest.mark.parametrize("line", ["../../etc_1", "one", "one_1/..", "a b_1", "_1", "one_1\0", "ü_1", "x" * 70 + "_1"])
def test_an_id_that_leaves_the_folder_is_refused(root, line):
    (root / "data" / "datasets" / "dev.txt").write_text(line)
    with pytest.raises(NeedsSetup, match="is no task's id"):
        Data(root)


def test_what_is_missing_is_named_with_its_mend(root, tmp_path):
    with pytest.raises(NeedsSetup, match=r"holds no tasks.*pip install appworld.*appworld install.*download data"):
        Data(tmp_path / "elsewhere")
    (root / "data" / "datasets" / "train.txt").write_bytes(b"\xff")
    with pytest.raises(NeedsSetup, match=r"train\.txt cannot be read"):
        Data(root)
    shutil.rmtree(root / "data" / "datasets")
    with pytest.raises(NeedsSetup, match="lists no tasks"):
        Data(root)
