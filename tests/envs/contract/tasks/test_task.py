"""Tasks and splits: an id must stay the same problem, and no problem may be in two splits."""

import dataclasses
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of

pytestmark = pytest.mark.versions


def tasks(size: int = 10) -> GeneratedTasks:
    return GeneratedTasks(lambda i: Task(f"train/{i}", "train", {"n": i}), size, "train/")


@given(st.integers(-30, 30), st.slices(10))
def test_a_generated_list_behaves_like_a_list(index, part):
    made, plain = tasks(), [Task(f"train/{i}", "train", {"n": i}) for i in range(10)]
    assert list(made) == plain and made[part] == plain[part]
    if -10 <= index < 10:
        assert made[index] == plain[index]
    else:
        with pytest.raises(IndexError):
            made[index]


@pytest.mark.parametrize(
    "name", ["train/10", "train/01", "train/-1", "train/", "train/1 ", "test/1", "1", "train/²", ""]
)
def test_find_takes_no_other_spelling_of_an_id(name):
    assert tasks().find(name) is None


def test_find_makes_only_what_is_asked_for():
    made = []
    many = GeneratedTasks(lambda i: made.append(i) or Task(f"t/{i}", "train", {"n": i}), 10**12, "t/")
    assert many.find("t/999999999999").params == {"n": 999_999_999_999}
    assert made == [999_999_999_999]


def test_content_is_about_the_params_alone():
    one = Task("a", "train", {"x": 1, "y": [1, 2]}, "easy")
    assert one.content == Task("b", "test", {"y": (1, 2), "x": 1}).content
    assert one.content != Task("a", "train", {"x": 1, "y": [2, 1]}, "easy").content
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.id = "c"


@given(st.text())
def test_a_content_belongs_to_one_split_for_ever(content):
    assert split_of(content) == split_of(content) in ("train", "validation", "test")
    assert split_of(content, {"only": 0.3}) == "only"
    assert split_of(content, {"none": 0.0, "all": 2.0}) == "all"


def test_shares_are_kept():
    counts = Counter(split_of(f"content {i}") for i in range(4000))
    assert counts["train"] / 4000 == pytest.approx(0.8, abs=0.03)
    assert counts["test"] / 4000 == pytest.approx(0.1, abs=0.03)
    halves = Counter(split_of(f"content {i}", {"a": 3, "b": 1}) for i in range(4000))
    assert halves["a"] / 4000 == pytest.approx(0.75, abs=0.03)
