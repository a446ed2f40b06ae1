"""An asynchronous order that learns from too old an episode, loses or doubles one, or comes to a standstill."""

import time
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.trainers.play.order.schedule import Consume, EpisodePlace, Schedule, ScheduleSize
from manyturn.trainers.play.order.simulation import Simulated, Workload, simulate

WORKLOADS = 1000
ORDERS = ("drawn", "any", "drop")


def random_work(rng: Random, consume: Consume) -> tuple[Workload, list[float]]:
    """Any sizes, long tails, a slow or a quick learner; and up to four kills."""
    tail, quick, slowest = rng.uniform(0, 2.5), rng.uniform(0, 5), rng.uniform(0, 30)
    groups = rng.randint(1, 6)
    work = Workload(
        episodes=groups * rng.randint(1, 4),
        steps=rng.randint(1, 15),
        staleness=rng.randint(0, 8),
        places=rng.randint(1, 40),
        play_seconds=lambda place: rng.lognormvariate(0, tail),
        learn_seconds=lambda step: rng.uniform(0, quick) if step % 3 else slowest,
        checkpoint_every=rng.randint(1, 5),
        groups=groups,
        consume=consume,
    )
    return work, [rng.uniform(0, 60) for _ in range(rng.randint(0, 4))]


def faults(work: Workload, found: Simulated, killed: bool) -> list[str]:
    """What must not be."""
    told = []
    ages = [age for step in found.ages.values() for age in step]
    if max(ages) > work.staleness or min(ages) < 0:
        told.append(f"an episode of {max(ages)} steps, where {work.staleness} are allowed")
    learnt = [place for step in range(1, work.steps + 1) for place in found.learnt[step]]
    dropped = [place for step in range(1, work.steps + 1) for place in found.dropped[step]]
    if dropped and work.consume != "drop":
        told.append("an episode was dropped")
    if any(len(found.learnt[step]) != work.episodes for step in range(1, work.steps + 1)):
        told.append("a step has not as many episodes as it should")
    steps = -(-len(learnt + dropped) // work.episodes)
    drawn = [EpisodePlace(step, number) for step in range(1, steps + 1) for number in range(work.episodes)]
    if sorted(learnt + dropped) != drawn[: len(learnt + dropped)]:
        told.append("an episode was lost or doubled")
    if work.consume == "drawn" and learnt != drawn:
        told.append("an episode was learnt from out of order")
    if not set(learnt) <= set(found.played) or max(found.played[place] for place in learnt) > 1:
        told.append("an episode that had ended was played again")
    if found.most_open > work.places:
        told.append(f"{found.most_open} episodes in {work.places} places")
    if not killed and len(found.figures) != work.steps:
        told.append("a step was done twice")
    return told


@pytest.mark.deep
@pytest.mark.parametrize("consume", ORDERS)
def test_no_workload_exceeds_the_bound_loses_an_episode_or_stands_still(consume):
    wrong = []
    for seed in range(WORKLOADS):
        work, kills = random_work(Random(seed), consume)
        if told := faults(work, simulate(work, kills), bool(kills)):
            wrong.append((seed, told))
    assert not wrong


@pytest.mark.parametrize("consume", ORDERS)
def test_a_killed_run_learns_from_the_same_episodes_as_before_the_kill(consume):
    for seed in range(200):
        work, _ = random_work(Random(seed), consume)
        found, seen = Simulated(), dict[int, list[EpisodePlace]]()
        kills, rng = [float(second) for second in range(5, 60, 5)], Random(seed)

        def noted(step: int, rng: Random = rng, found: Simulated = found, seen: dict = seen) -> float:
            assert seen.setdefault(step, found.learnt[step]) == found.learnt[step]
            return rng.uniform(0, 5)

        simulate(replace(work, learn_seconds=noted, checkpoint_every=4), kills, found)
        assert len(seen) == work.steps


def test_whoever_is_slow_is_waited_for_or_dropped_but_never_too_old():
    """Each step has one group that takes as long as twenty others."""
    slow = {EpisodePlace(step, 0): 20.0 for step in range(1, 31)}
    runs = {
        consume: simulate(
            Workload(8, 30, 2, 12, lambda place: slow.get(place, 1.0), lambda step: 0.5, groups=4, consume=consume)
        )
        for consume in ORDERS
    }
    assert runs["drop"].seconds < runs["any"].seconds <= runs["drawn"].seconds
    assert not any(runs["any"].dropped.values()) and any(runs["drop"].dropped.values())
    shares = [line["dropped"] for line in runs["drop"].figures]
    assert 0 < max(shares) < 1 and "dropped" not in runs["drawn"].figures[0]
    for found in runs.values():
        assert max(line["staleness_max"] for line in found.figures) <= 2
    learnt = [place for step in runs["drop"].learnt.values() for place in step]
    assert sum(place in slow for place in learnt) < 15, "those that take long are learnt from less often"


@pytest.mark.slow
@pytest.mark.parametrize("consume", ORDERS)
def test_a_hundred_thousand_episodes_on_a_thousand_hosts_are_simulated_in_a_minute(consume):
    rng = Random(5)
    work = Workload(
        1000, 100, 4, 1000 * 4, lambda place: rng.lognormvariate(3, 1.2), lambda step: 5.0, groups=125, consume=consume
    )
    began = time.process_time()
    found = simulate(work)
    assert sum(map(len, found.learnt.values())) == 100_000 and not faults(work, found, False)
    assert time.process_time() - began < 60


@given(st.integers(0, 6), st.integers(1, 6), st.integers(1, 4), st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_no_place_stands_empty_while_an_episode_may_begin(staleness, episodes, places, seed):
    rng, clock = Random(seed), [0.0]
    schedule = Schedule(ScheduleSize(episodes, 6, staleness, places), clock=lambda: clock[0])
    begun, running = set[EpisodePlace](), list[EpisodePlace]()
    while schedule.done < 6:
        while (place := schedule.next()) is not None:
            begun.add(place)
            running.append(place)
        steps = range(schedule.done + 1, schedule.newest + 1)
        left = {EpisodePlace(step, number) for step in steps for number in range(episodes)} - begun
        assert schedule.open == len(running) and (schedule.open == places or not left)
        clock[0] += rng.random()
        if schedule.is_ready:
            schedule.learn()
            schedule.learnt()
        else:
            schedule.ends(running.pop(rng.randrange(len(running))))


def test_staleness_0_is_the_synchronous_order():
    rng = Random(3)
    seconds = {EpisodePlace(step, number): rng.lognormvariate(0, 1) for step in range(1, 9) for number in range(5)}
    found = simulate(Workload(5, 8, 0, 40, seconds.__getitem__, lambda step: 2.0))
    expected = sum(max(seconds[EpisodePlace(step, number)] for number in range(5)) + 2.0 for step in range(1, 9))
    assert found.seconds == pytest.approx(expected)


def test_slow_episodes_hold_up_nobody_else_and_idle_shares_are_those_of_the_clock():
    """One episode of each step takes 10 s, the others 1 s, on as many places as a step has episodes."""
    slow = {EpisodePlace(step, 0): 10.0 for step in range(1, 21)}
    runs = {k: simulate(Workload(5, 20, k, 5, lambda place: slow.get(place, 1.0), lambda step: 1.0)) for k in (0, 4)}
    assert runs[0].seconds == pytest.approx(20 * 11)
    assert runs[4].seconds < 0.5 * runs[0].seconds
    [first, *_] = runs[0].figures
    assert first["learner_idle"] == pytest.approx(10 / 11)
    assert first["players_idle"] == pytest.approx((4 * 9 + 5 * 1) / (5 * 11))
    assert first["staleness_max"] == 0 and max(line["staleness_max"] for line in runs[4].figures) <= 4


def test_time_in_which_a_step_could_be_learnt_from_is_no_waiting_for_episodes():
    """A validation, or a checkpoint, between two steps whose episodes are all there."""
    clock = [0.0]
    schedule = Schedule(ScheduleSize(2, 2, 1, 4), clock=lambda: clock[0])
    places = [schedule.next() for _ in range(4)]
    for place in places:
        assert place is not None
        schedule.ends(place)
    told = []
    for seconds in (0.0, 10.0):
        clock[0] += seconds
        schedule.learn()
        clock[0] += 1.0
        told.append(schedule.learnt()["learner_idle"])
    assert told == [0.0, 0.0]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda schedule: schedule.learn(), "step 1 cannot be learnt from: 0 groups are complete"),
        (lambda schedule: schedule.learnt(), "no step is being learnt from"),
        (lambda schedule: schedule.ends(EpisodePlace(1, 0)), "is not open"),
        (lambda schedule: Schedule(ScheduleSize(5, 3, 1, 4, groups=2)), "2 groups of 5 episodes"),
    ],
)
def test_a_caller_out_of_step_is_an_error(wrong, told):
    with pytest.raises(ValueError, match=told):
        wrong(Schedule(ScheduleSize(2, 3, 1, 4)))
