"""Curricula: what each promises whatever it is told, what each prefers, and what a step tells the next one."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from credit_batches import quick
from hypothesis import given
from hypothesis import strategies as st

from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.play.rollout.curriculum_feedback import findings
from manyturn.trainers.play.rollout.dynamic_sampling import Refill
from manyturn.trainers.play.rollout.horizon import Horizon, turn_limit
from manyturn.trainers.play.rollout.rollout_batch import learnable, turn_batch
from manyturn.trainers.play.tasks import task_memory
from manyturn.trainers.play.tasks.curricula.band import BandConfig
from manyturn.trainers.play.tasks.curricula.mopps import MoppsConfig
from manyturn.trainers.play.tasks.curricula.pcl import WEIGHTS
from manyturn.trainers.play.tasks.curricula.spo_weights import SpoWeightsConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskFeedback, TaskPool, label_of
from manyturn.trainers.play.tasks.task_draws import CANDIDATES, distinct

LEVELS = ("easy", "medium", "hard")
every_curriculum = pytest.mark.parametrize("name", CURRICULA.names())


class Split(GeneratedTasks):
    """Tasks of three difficulties in turn, that count how many of them were made."""

    def __init__(self, size: int):
        self.made = 0
        super().__init__(self._task, size, "t")

    def _task(self, number: int) -> Task:
        self.made += 1
        return Task(f"t{number}", "train", {"n": number}, difficulty=LEVELS[number % 3])


def found(pool: TaskPool, numbers: Sequence[int], advantage: dict[str, float] | None = None) -> list[TaskFeedback]:
    """Feedback of which every figure is drawn from the task's number, but for the advantage if it is given."""
    entries = []
    for number in sorted(set(numbers)):
        label, rng = label_of(pool.tasks[number]), generator("found", pool.seed, pool.step, number)
        size = rng.uniform(0, 2) if advantage is None else advantage[label]
        wins = int(rng.integers(0, 9))
        entries.append(TaskFeedback(number, label, wins / 8, wins / 8, size, 0 < wins < 8, 8))
    return entries


def play(config, tasks: Sequence[Task], count: int, seed: int, steps: int, **told) -> list[list[int]]:
    """The draws of some steps; between two of them the memory goes through a checkpoint."""
    drawn, memory, feedback = [], {}, []
    for step in range(1, steps + 1):
        pool = TaskPool(tasks, count, seed, step, [TaskFeedback(*row) for row in feedback])
        numbers, memory = CURRICULA.apply_remembering(CURRICULA.parse(config), memory, pool)
        drawn.append(list(numbers))
        memory = json.loads(json.dumps(memory, sort_keys=True, allow_nan=False))
        feedback = json.loads(json.dumps(found(pool, numbers, **told), allow_nan=False))
    return drawn


# ---- every curriculum -------------------------------------------------------------------------------------------


@every_curriculum
@quick
@given(size=st.integers(2, 60), count=st.integers(1, 12), seed=st.integers(0, 99))
def test_draws_are_of_the_pool_and_the_same_again(name, size, count, seed):
    drawn = play(name, Split(size), count, seed, steps=4)
    assert drawn == play(name, Split(size), count, seed, steps=4)
    for numbers in drawn:
        assert len(numbers) == count
        assert all(type(number) is int and 0 <= number < size for number in numbers)
        # Only uniform ends one pass over the split and begins the next within a step.
        assert name == "uniform" or len(set(numbers)) == min(size, count)


@every_curriculum
def test_other_seeds_and_steps_draw_otherwise(name):
    draws = [tuple(row) for seed in range(4) for row in play(name, Split(1000), 8, seed, steps=4)]
    assert len(set(draws)) == len(draws)


@every_curriculum
@quick
@given(size=st.integers(1, 40), count=st.integers(1, 8), seed=st.integers(0, 99), data=st.data())
def test_further_rounds_of_a_step_draw_what_it_has_not_drawn(name, size, count, seed, data):
    taken = frozenset(data.draw(st.sets(st.integers(0, size - 1))))
    config, memory, tasks = CURRICULA.parse(name), {}, Split(size)
    first = TaskPool(tasks, count, seed, 1)
    _, memory = CURRICULA.apply_remembering(
        config, memory, TaskPool(tasks, 1, seed, 2, found(first, range(0, size, 2)))
    )
    numbers, _ = CURRICULA.apply_remembering(config, memory, TaskPool(tasks, count, seed, 3, (), taken))
    left = size - len(taken)
    assert len(numbers) == count and set(numbers) <= set(range(size))
    if taken:
        assert len(set(numbers) - taken) == min(left, count)


@every_curriculum
def test_a_million_tasks_are_not_listed(name):
    tasks = Split(1_000_000)
    drawn = play(name, tasks, 4, seed=0, steps=20)
    told = sum(len(set(numbers)) for numbers in drawn)  # made by this test, to tell what was found
    assert tasks.made - told <= 20 * 4 * CANDIDATES
    assert name == "band" or len({number for numbers in drawn for number in numbers}) == 80  # it plays again


@every_curriculum
def test_what_is_remembered_stays_small(name, monkeypatch):
    monkeypatch.setattr(task_memory, "MOST_TASKS", 50)
    monkeypatch.setattr(task_memory, "MOST_LABELS", 5)
    tasks = [Task(f"t{n}", "train", tags=(f"kind {n % 40}",)) for n in range(400)]
    memory, feedback, sizes = {}, [], []
    for step in range(1, 40):
        pool = TaskPool(tasks, 20, 0, step, feedback)
        numbers, memory = CURRICULA.apply_remembering(CURRICULA.parse(name), memory, pool)
        feedback = found(pool, numbers)
        held = next(iter(memory.values()), ())
        sizes.append(len(held))
    assert max(sizes) <= (6 if isinstance(held, dict) else WEIGHTS if name == "pcl" else 50)


def test_an_empty_split_is_refused():
    with pytest.raises(ValueError, match="the training split has no task"):
        TaskPool([], 4, 0, 1)


# ---- each one ---------------------------------------------------------------------------------------------------


def test_uniform_draws_what_it_always_drew():
    """A run that is resumed, or repeated years later, meets the same tasks."""
    drawn = {
        size: list(CURRICULA.apply(CURRICULA.parse("uniform"), TaskPool(Split(size), 4, 3, 2)))
        for size in (5, 40, 10**6)
    }
    assert drawn == {5: [1, 2, 4, 0], 40: [19, 21, 30, 25], 10**6: [570684, 981703, 332974, 939867]}


@pytest.mark.parametrize("name", ["dump", "sec"])
def test_the_label_that_teaches_is_drawn_most_and_no_other_is_forgotten(name):
    drawn = play(name, Split(600), 12, seed=0, steps=40, advantage={"easy": 0.1, "medium": 0.9, "hard": 0.2})
    late = Counter(LEVELS[number % 3] for numbers in drawn[20:] for number in numbers)
    assert late["medium"] > 0.7 * 20 * 12
    assert min(late[level] for level in LEVELS) > 0


def test_dump_tries_a_label_that_was_never_drawn():
    taught = {level: {"episodes": 200, "recent": [0.5] * 200} for level in LEVELS[:2]}
    numbers, _ = CURRICULA.apply_remembering(
        CURRICULA.parse("dump"), {"curriculum dump": taught}, TaskPool(Split(300), 12, 0, 1)
    )
    assert sum(LEVELS[number % 3] == "hard" for number in numbers) >= 10


@pytest.mark.parametrize("name", ["dump", "sec"])
def test_a_choice_between_kinds_is_refused_where_there_is_one_kind(name):
    """It would be uniform under another name."""
    tasks = [Task(f"t{n}", "train", difficulty="easy") for n in range(50)]
    with pytest.raises(ValueError, match="all 'easy': give tasks a difficulty or tags"):
        play(name, tasks, 4, seed=0, steps=1)


def band_draws(memory: list[list[float]], size: int, steps: int = 200, **options) -> list[int]:
    config, held = BandConfig(**options), {"curriculum band": memory}
    pools = [TaskPool(Split(size), 8, 0, step) for step in range(steps)]
    return [number for pool in pools for number in CURRICULA.apply_remembering(config, held, pool)[0]]


def test_band_draws_middling_tasks_and_explores_as_often_as_asked():
    success = {n: (0.0, 0.1, 0.5, 0.9, 1.0)[n % 5] for n in range(100)}
    counts = Counter(success.get(n) for n in band_draws([[n, s] for n, s in success.items()], size=1000))
    inside = counts[0.1] + counts[0.5] + counts[0.9]
    assert abs(inside / 1600 - 0.75) < 0.04  # 4 sigma
    assert counts[0.0] == counts[1.0] == 0  # tasks never played are explored first
    assert counts[None] == 1600 - inside
    # When all were played, what lies outside of the band is tried again.
    counts = Counter(success.get(n) for n in band_draws([[n, s] for n, s in success.items()], size=100))
    assert abs((counts[0.0] + counts[1.0]) / 1600 - 0.25) < 0.04


def test_band_remembers_success_as_told():
    memory, tasks = {"curriculum band": [[4, 0.5], [6, 1.0]]}, Split(10)
    told = [TaskFeedback(4, "", 1.0, 1.0, 0.0, False, 8), TaskFeedback(2, "", 0.25, 0.25, 0.5, True, 8)]
    _, memory = CURRICULA.apply_remembering(BandConfig(rate=0.5), memory, TaskPool(tasks, 2, 0, 1, told))
    assert memory["curriculum band"] == [[6, 1.0], [4, 0.75], [2, 0.25]]
    with pytest.raises(ConfigError, match=r"low 0\.9 is not below high 0\.1"):
        BandConfig(low=0.9, high=0.1)


def test_mopps_plays_what_may_be_a_toss_and_comes_back_to_what_is_forgotten():
    rows = [[n, *[(1.0, 99.0), (50.0, 50.0), (99.0, 1.0)][n % 3]] for n in range(99)]
    memory, pool = {"curriculum mopps": rows}, TaskPool(Split(100), 8, 0, 1)
    drawn, _ = CURRICULA.apply_remembering(MoppsConfig(), memory, pool)
    assert all(number % 3 == 1 or number == 99 for number in drawn)
    told = [TaskFeedback(0, "", 1.0, 1.0, 0.0, False, 8), TaskFeedback(99, "", 0.25, 0.25, 0.5, True, 8)]
    pool = TaskPool(Split(100), 8, 0, 1, told)
    _, memory = CURRICULA.apply_remembering(MoppsConfig(decay=0.5), memory, pool)
    assert memory["curriculum mopps"][-2:] == [[0, 9.0, 50.0], [99, 3.0, 7.0]]


def test_pcl_predicts_tasks_that_were_never_played():
    """Success falls with the number of doors, in tasks of which none comes twice."""
    tasks = GeneratedTasks(lambda n: Task(f"t{n}", "train", {"doors": n % 5, "place": f"hall {n}"}), 10**6, "t")
    memory, feedback, doors = {}, [], []
    for step in range(1, 21):
        pool = TaskPool(tasks, 8, 0, step, feedback)
        numbers, memory = CURRICULA.apply_remembering(CURRICULA.parse("pcl"), memory, pool)
        feedback = [TaskFeedback(n, "", 1 - n % 5 / 4, 0.0, 0.0, n % 5 in (1, 2, 3), 8) for n in numbers]
        doors += [number % 5 for number in numbers]
    assert doors[:8].count(2) < 4 and doors[-80:].count(2) > 60
    assert json.loads(json.dumps(memory)) == memory


def test_pcl_is_refused_where_all_tasks_have_the_same_words():
    """It would be uniform under another name."""
    tasks = [Task(f"t{n}", "train", {"doors": 3}) for n in range(50)]
    with pytest.raises(ValueError, match=r"pcl .* mopps"):
        play("pcl", tasks, 4, seed=0, steps=1)


def test_spo_draws_in_proportion_to_its_weights():
    """Two tasks never played have v = 1/2, and so the largest weight: sqrt(1/4) + 0.05."""
    held = {"curriculum spo_weights": [[0, 9.0, 1.0], [1, 5.0, 5.0], [2, 99.0, 0.0]]}
    pools = [TaskPool(Split(5), 1, 0, step) for step in range(4000)]
    drawn = Counter(CURRICULA.apply_remembering(SpoWeightsConfig(), held, pool)[0][0] for pool in pools)
    weights = np.array([0.35, 0.55, 0.05, 0.55, 0.55])
    expected = weights / weights.sum()
    share = np.array([drawn[n] for n in range(5)]) / 4000
    assert (abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 4000)).all()


def test_spo_without_replacement_is_as_drawing_one_by_one():
    """The second of two draws has the law of successive draws, whether the tasks are remembered or not."""
    weights = np.array([0.35, 0.55, 0.05, 0.55])
    held = {"curriculum spo_weights": [[0, 9.0, 1.0], [1, 5.0, 5.0], [2, 99.0, 0.0]]}
    pools = [TaskPool(Split(4), 2, 0, step) for step in range(4000)]
    pairs = [CURRICULA.apply_remembering(SpoWeightsConfig(), held, pool)[0] for pool in pools]
    first = weights / weights.sum()
    for n in range(4):
        expected = sum(first[m] * weights[n] / (weights.sum() - weights[m]) for m in range(4) if m != n)
        share = np.mean([second == n for _, second in pairs])
        assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 4000)


@quick
@given(size=st.integers(1, 50), count=st.integers(0, 60), seed=st.integers(0, 99), data=st.data())
def test_numbers_are_distinct_while_there_are_any(size, count, seed, data):
    without = data.draw(st.sets(st.integers(0, size - 1)))
    drawn = distinct(np.random.default_rng(seed), size, count, without)
    left = size - len(without)
    assert len(drawn) == count
    head = drawn[:left]
    assert len(set(head)) == len(head) and not set(head) & without


# ---- horizon ----------------------------------------------------------------------------------------------------


@given(first=st.integers(1, 9), by=st.integers(1, 9), every=st.integers(1, 9), more=st.integers(1, 40))
@quick
def test_the_turn_limit_grows_from_first_to_last(first, by, every, more):
    horizon = Horizon(first=first, by=by, every=every, last=first + more)
    limits = [turn_limit(horizon, step) for step in range(1, 9 * 40 + 2)]
    assert limits[:every] == [first] * every and limits[-1] == first + more
    assert all(0 <= b - a <= by for a, b in pairwise(limits))
    assert limits[every] == min(first + by, first + more)


def test_a_horizon_that_cannot_grow_is_refused():
    with pytest.raises(ConfigError, match="first 8 is not below last 8"):
        Horizon(first=8, by=1, every=1, last=8)


# ---- refill and findings ----------------------------------------------------------------------------------------


def episodes(task: Task, *returns: float | None, turns: int = 2) -> list[Episode]:
    """A group: a return for each member, None for one that ended in an error."""
    group = []
    for member, reward in enumerate(returns):
        record = [TurnRecord("", "", "", True, True, r, {"outcome": r}, "a", None, (0, 0)) for r in [0.0] * (turns - 1)]
        last = reward or 0.0
        record.append(TurnRecord("", "", "", True, True, last, {"outcome": last}, "b", None, (0, 0)))
        error = reward is None
        ending = Ending.ENV_ERROR if error else Ending.COMPLETED
        success = None if error else last > 0.5
        group.append(Episode(EpisodeKey(0, "train/1", task.id, member), task, record, ending, success=success))
    return group


def test_rounds_replace_groups_without_spread_until_the_last_keeps_all():
    a, b, c, d, e = ([*Split(5)][n] for n in range(5))
    refill = Refill(groups=2, size=2, rounds=3)
    assert refill.missing == 2
    refill = refill.after([*episodes(a, 1, 1), *episodes(b, 0, 1)])
    assert refill.is_kept == (False, False, True, True) and refill.missing == 1
    refill = refill.after(episodes(c, 0, None))  # one score alone has no spread
    assert refill.missing == 1
    refill = refill.after(episodes(d, 0, 0))
    assert refill.missing == 0 and refill.round == 3
    kept = [episode.task.id for episode, kept in zip(refill.played, refill.is_kept, strict=True) if kept]
    assert kept == ["t1", "t1", "t3", "t3"] and len(refill.played) == 8
    assert Refill(groups=1, size=3, rounds=2).after(episodes(a, 0, 1, None)).missing == 0
    done = Refill(groups=2, size=2, rounds=9).after([*episodes(a, 0, 1), *episodes(e, 1, 0)])
    assert done.missing == 0 and all(done.is_kept)


def test_a_single_round_keeps_whatever_was_played():
    task = Split(1)[0]
    refill = Refill(groups=1, size=3, rounds=1).after(episodes(task, 1, 1, None))
    assert refill.is_kept == (True, True, True) and refill.missing == 0


def test_findings_tell_what_each_task_taught():
    split = Split(4)
    nan = float("nan")
    groups = [
        episodes(split[0], 1.0, 0.0, None),
        episodes(split[1], 1.0, 1.0),
        episodes(split[2], None, nan),
        episodes(split[3], 1.0, 0.25, nan),
    ]
    played = [episode for group in groups for episode in group]
    learnt = learnable([*groups[0], *groups[2], *groups[3]])
    earned = credit(turn_batch(learnt), CreditConfig(advantage={"name": "grpo", "std": False}))
    told = findings(played, {f"t{n}": 10 + n for n in range(4)}, [earned])
    assert told == [
        TaskFeedback(10, "easy", 0.5, 0.5, 0.5, True, 2),
        TaskFeedback(11, "medium", 1.0, 1.0, 0.0, False, 2),  # was not learnt from
        TaskFeedback(13, "easy", 0.5, 0.625, 0.375, True, 2),
    ]
    assert [TaskFeedback(*row) for row in json.loads(json.dumps(told, allow_nan=False))] == told


def test_listed_parts_are_in_a_batch_that_earned_none():
    batch = turn_batch(episodes(Split(1)[0], 1.0, 0.0), part_names=("bonus", "outcome"))
    np.testing.assert_array_equal(batch.parts["bonus"], np.zeros(4))
    assert set(batch.parts) == {"bonus", "outcome"}
