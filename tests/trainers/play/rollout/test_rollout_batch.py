"""Which tasks a step draws, and what its episodes become."""

from hypothesis import given
from hypothesis import strategies as st

from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task
from manyturn.trainers.play.rollout.rollout_batch import describe, plan_groups
from manyturn.trainers.play.tasks.curricula.uniform import UniformConfig, uniform
from manyturn.trainers.play.tasks.curriculum_input import TaskPool
from manyturn.trainers.record.metrics import checked


def numbered(size: int) -> GeneratedTasks:
    return GeneratedTasks(lambda i: Task(f"t{i}", "train", {"i": i}), size, "t")


def draw(tasks: GeneratedTasks, count: int, seed: int, step: int) -> list[Task]:
    return [tasks[number] for number in uniform(TaskPool(tasks, count, seed, step), UniformConfig())]


@given(size=st.integers(1, 40), count=st.integers(1, 20), seed=st.integers(0, 99))
def test_no_task_comes_twice_before_all_have_come(size, count, seed):
    drawn = [task.id for step in range(1, 2 + 2 * size // count) for task in draw(numbered(size), count, seed, step)]
    for epoch in range(len(drawn) // size):
        assert len(set(drawn[epoch * size : (epoch + 1) * size])) == size


@given(step=st.integers(1, 50), seed=st.integers(0, 99))
def test_a_step_draws_the_same_tasks_whatever_came_before(step, seed):
    """A resumed run has no memory of earlier draws."""
    for size in (30, 1_000_000):
        tasks = numbered(size)
        assert draw(tasks, 8, seed, step) == draw(tasks, 8, seed, step)
        assert len({task.id for task in draw(numbered(1_000_000), 8, seed, step)}) == 8


@given(count=st.integers(1, 12), group=st.integers(1, 5))
def test_no_two_episodes_of_a_step_share_a_key(count, group):
    """A split smaller than a step gives a task twice; its episodes still need noise of their own."""
    plan = plan_groups(draw(numbered(5), count, 0, 1), group, 0, "train/1")
    assert len({key for _, key in plan}) == len(plan) == count * group


def episode(*turns: tuple[dict[str, float], bool | None]) -> Episode:
    """A finished episode of turns with these parts, whose replies were cut or not."""
    records = [
        TurnRecord("", "", "", True, True, sum(parts.values()), parts, "", None, (0, 0), usage=Usage(cut=cut))
        for parts, cut in turns
    ]
    return Episode(EpisodeKey(0, "s", "t", 0), Task("t", "train"), records, Ending.COMPLETED, success=True)


def test_cut_replies_are_a_share_of_those_of_which_it_is_known():
    played = [episode(({}, True), ({}, False)), episode(({}, False), ({}, False), ({}, None))]
    assert describe(played)["cut"] == 0.25
    assert describe([episode(({}, None))])["cut"] is None


def test_parts_are_means_over_episodes_of_what_each_came_to():
    played = [episode(({"found": 0.5}, None), ({"found": 0.5, "outcome": 1.0}, None)), episode(({}, None))]
    told = describe(played, part_names=["never"])
    parts = {name: value for name, value in told.items() if name.startswith("parts/")}
    assert parts == {"parts/found": 0.5, "parts/never": 0.0, "parts/outcome": 0.5}
    assert told["return"] == 1.0 and checked(told) == told


def test_a_part_that_is_no_number_is_left_out_of_its_mean():
    played = [episode(({"found": float("nan")}, None)), episode(({"found": 0.5}, None))]
    assert describe(played)["parts/found"] == 0.5


def test_an_outcome_alone_has_no_parts():
    assert not [name for name in describe([episode(({"outcome": 1.0}, None))]) if name.startswith("parts/")]
