"""A worker that grows is replaced between episodes, and no episode pays for it."""

import asyncio
import contextlib
import os
from pathlib import Path

import psutil
import pytest

from manyturn.envs.hosting.local.resource_use import WorkerLimits, held_below
from manyturn.envs.hosting.local.seats import WorkerSeats
from manyturn.envs.hosting.local.worker import WorkerError

FAULTY = f"{Path(__file__).parents[2] / 'faulty.py'}:Faulty"
LIMITS = WorkerLimits(memory_mb=150, files=40, threads=20, processes=4)
GROWTH = {"memory_mb": "hoard 130", "files": "open 50", "threads": "threads 25", "processes": "children 6"}


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.deep
@pytest.mark.parametrize("name", GROWTH)
def test_a_worker_above_a_limit_ends_after_its_last_episode_and_a_fresh_one_takes_the_next(name):
    async def run():
        async with WorkerSeats(FAULTY, limit=2, workers=1, limits=LIMITS) as seats:
            tasks = seats.tasks("train")
            async with seats.take() as long:
                first = await long.reset(tasks[1], 5)
                async with seats.take() as seat:
                    await seat.reset(tasks[0], 5)
                    await seat.step(GROWTH[name])
                [old] = seats.pids
                await until(lambda: not seats.pids)
                async with seats.take() as seat:
                    assert await seat.reset(tasks[1], 5) == first
                    second = await seat.step("look")
                [new] = seats.pids
                assert new != old
                assert await long.step("look") == second
                assert psutil.pid_exists(old)
            await until(lambda: not psutil.pid_exists(old))
            assert seats.pids == [new] and dict(seats.replaced) == {name: 1}

    asyncio.run(run())


def test_a_worker_far_above_a_limit_is_killed_in_the_middle_of_a_turn():
    async def run():
        async with WorkerSeats(FAULTY, limit=2, workers=1, limits=LIMITS) as seats:
            async with seats.take() as seat, seats.take() as neighbour:
                await neighbour.reset(seats.tasks("train")[1], 0)
                await seat.reset(seats.tasks("train")[0], 0)
                with pytest.raises(WorkerError, match=r"held memory_mb = \d+, more than twice the limit of 150"):
                    await seat.step("hoard 300")
                    await neighbour.step("sleep 30")
            assert dict(seats.replaced) == {"memory_mb": 1}

    asyncio.run(run())


def test_a_worker_that_is_large_from_the_start_still_plays():
    async def run():
        async with (
            WorkerSeats(FAULTY, limit=1, workers=1, limits=WorkerLimits(memory_mb=30)) as seats,
            seats.take() as seat,
        ):
            await seat.reset(seats.tasks("train")[0], 0)
            await seat.step("sleep 0.6")
            assert (await seat.step("win")).success and not seats.replaced

    asyncio.run(run())


def test_what_a_process_holds_is_counted_with_all_that_it_started():
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(Path(__file__).open())
        keeper = asyncio.run(_grown())
        here = held_below(os.getppid())  # this process is below the one that started it
    assert here["files"] >= 40
    assert keeper["processes"] == 3 and keeper["files"] >= 8 and keeper["memory_mb"] > 100 and keeper["threads"] >= 8


async def _grown():
    async with WorkerSeats(FAULTY, limit=1, workers=1) as seats, seats.take() as seat:
        await seat.reset(seats.tasks("train")[0], 0)
        for action in ("children 3", "hoard 80", "threads 5"):
            await seat.step(action)
        return held_below(psutil.Process(seats.pids[0]).ppid())


@pytest.mark.parametrize("name", GROWTH)
def test_a_limit_of_nothing_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}: .*greater than or equal to 1"):
        WorkerLimits(**{name: 0})
