"""Generated tasks must be solvable, the same for ever, and never shared between splits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.contract.tasks.task import SPLITS, split_of
from manyturn.envs.household.layouts import LEVELS, pair_is_unseen
from manyturn.envs.household.object_types import OPENABLE
from manyturn.envs.household.problem import STATIONS, bits
from manyturn.envs.household.task_generator import SIZES, HouseholdTasks, build, find_task, make_task
from manyturn.envs.household.text import GRAMMARS
from manyturn.envs.household.world import Tables, World

pytestmark = pytest.mark.versions

TASK_IDS = st.builds(
    lambda split, level, number: f"{split}/{level}/{number}",
    st.sampled_from(list(SIZES)),
    st.sampled_from(list(LEVELS)),
    st.integers(0, 9_000),
)


@settings(max_examples=80, deadline=None)
@given(TASK_IDS)
def test_a_task_is_determined_by_its_id_and_belongs_to_its_split_alone(task_id: str) -> None:
    task = find_task(task_id)
    split, level, number = task_id.split("/")
    assert task == make_task(split, level, int(number)) and task.id == task_id
    if split in SPLITS:
        assert split_of(task.content) == split


@pytest.mark.parametrize("level", LEVELS)
def test_no_problem_is_in_two_splits(level: str) -> None:
    contents = {split: {HouseholdTasks(split, level)[i].content for i in range(150)} for split in SIZES}
    merged = set().union(*contents.values())
    assert len(merged) == sum(map(len, contents.values()))


@pytest.mark.parametrize("level", LEVELS)
def test_rooms_and_pairs_of_the_unseen_split_occur_nowhere_else(level: str) -> None:
    usual = [HouseholdTasks(split, level)[i].params for split in SPLITS for i in range(200)]
    unseen = [HouseholdTasks("test_unseen", level)[i].params for i in range(200)]
    assert not {p["receptacles"] for p in usual} & {p["receptacles"] for p in unseen}
    pairs = [{tuple(p["goal"].split()[1:]) for p in group} for group in (usual, unseen)]
    assert not pairs[0] & pairs[1]
    assert all(pair_is_unseen(*pair) for pair in pairs[1])


def test_layouts_and_pairs_of_the_unseen_split_occur_in_no_level_of_the_others() -> None:
    usual = {HouseholdTasks("train", level)[i].params["receptacles"] for level in LEVELS for i in range(200)}
    unseen = {HouseholdTasks("test_unseen", level)[i].params["receptacles"] for level in LEVELS for i in range(200)}
    assert not usual & unseen


@settings(max_examples=80, deadline=None)
@given(TASK_IDS)
def test_every_problem_can_be_solved_and_is_not_solved_already(task_id: str) -> None:
    problem = build(find_task(task_id).params)
    level = LEVELS[task_id.split("/")[1]]
    assert level.receptacles[0] <= len(problem.receptacles) <= level.receptacles[1]
    assert level.objects[0] <= len(problem.objects) <= level.objects[1]
    kind = problem.goal.kind
    if kind == "light":
        assert problem.lamps
    else:
        assert any(problem.fits[r] & problem.targets for r in problem.goals)
    if kind in STATIONS:
        assert STATIONS[kind] in problem.receptacle_types
    assert problem.targets.bit_count() >= (2 if kind == "two" else 1)
    everywhere = 0
    for mask in problem.contents:
        assert not everywhere & mask, "an object is in two places"
        everywhere |= mask
    assert everywhere == (1 << len(problem.objects)) - 1
    assert problem.targets & problem.traits["pickupable"] == problem.targets
    assert {problem.receptacle_types[r] for r in bits(problem.openable)} <= OPENABLE
    assert not World(Tables(problem, GRAMMARS["move"])).won


def test_a_filter_of_kinds_does_not_rename_tasks() -> None:
    everything = HouseholdTasks("train", "hard")
    some = HouseholdTasks("train", "hard", ["heat", "two"])
    assert [task.tags[0] for task in some[:6]] == ["heat", "two"] * 3
    assert all(everything.find(task.id) == task for task in some[:10])
    assert len(some) * 3 == len(everything) and some[-1] == some[len(some) - 1]
    with pytest.raises(IndexError):
        some[len(some)]


def test_tasks_stay_what_they_were_when_results_were_published() -> None:
    ids = ("train/tiny/0", "validation/easy/1", "test/medium/2", "test_unseen/hard/3")
    assert [find_task(task_id).content for task_id in ids] == PINNED


PINNED = [
    "cb2be0c079d733205d17adafa31c8ec8",
    "5122b7c21019429b4e765317ca532008",
    "26e13c9a75db02e2892f4cab261e9ca5",
    "167280b605f98fccc1b1a48096663fa6",
]


@pytest.mark.parametrize(
    "task_id", ["", "train", "train/easy", "train/easy/", "train/easy/01", "train/easy/-1", "x/y/1"]
)
def test_an_id_that_is_not_exact_names_no_task(task_id: str) -> None:
    assert find_task(task_id) is None
