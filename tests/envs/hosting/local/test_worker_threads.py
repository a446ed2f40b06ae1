"""Episodes in threads of one worker: none that hangs, raises or keeps Python's lock costs another one an answer."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import WorkerSeats
from manyturn.envs.hosting.local.worker import WorkerError

FILE = Path(__file__).parents[2] / "faulty.py"
OUTSIDE = f"{FILE}:Outside"
SLOW_FILE = """
import os, sys, time
from pathlib import Path

with Path(__file__).with_suffix(".log").open("a") as log:
    log.write(f"{{os.getpid()}} ")
time.sleep(0.5)
sys.path.append({folder!r})
from faulty import Outside as Slow
"""


async def begun(seats: WorkerSeats, stack, count: int):
    """Seats with an episode each, all begun at once."""
    taken = [await stack.enter_async_context(seats.take()) for _ in range(count)]
    tasks = seats.tasks("train")
    firsts = await asyncio.gather(*(seat.reset(tasks[i], i) for i, seat in enumerate(taken)))
    assert [first.observation.split()[1] for first in firsts] == [str(i) for i in range(count)]
    return taken


def attack(actions: list[str], *later: list[str], timeout: float = 30.0):
    """What each seat of one worker answers to an action of its own, and then to further ones."""

    async def run():
        seats, rounds = WorkerSeats(OUTSIDE, limit=8, workers=1, timeout=timeout), []
        async with seats, contextlib.AsyncExitStack() as stack:
            taken = await begun(seats, stack, len(actions))
            for those in (actions, *later):
                steps = (seat.step(action) for seat, action in zip(taken, those, strict=True))
                rounds.append(await asyncio.gather(*steps, return_exceptions=True))
            return rounds, seats.figures()["behind_seconds"], len(seats.pids)

    return asyncio.run(run())


def is_echo(answer: object, action: str) -> bool:
    return isinstance(answer, Answer) and answer.observation.startswith(f"{action} ")


HARMS = ("raise", "exit", "cancel", "hold 0.3", "threads 4", "at_exit")


@pytest.mark.parametrize("harm", ["interrupt", *(pytest.param(one, marks=pytest.mark.deep) for one in HARMS)])
def test_many_that_do_harm_in_threads_cost_their_neighbours_nothing(harm):
    first, second = [harm, "look"] * 4, ["look"] * 8
    (answers, later), behind, workers = attack(first, second)
    raises = harm in ("raise", "exit", "cancel", "interrupt")
    assert [is_echo(one, "look") for one in answers[1::2]] == [True] * 4
    assert [isinstance(one, Exception) for one in answers[::2]] == [raises] * 4
    assert [is_echo(one, "look") for one in later[1::2]] == [True] * 4
    assert (behind, workers) == (pytest.approx(0, abs=0.05), 1)


@pytest.mark.deep
def test_one_that_takes_its_deadline_away_is_the_only_suspect():
    [answers], _, _ = attack(["undue", "look", "sleep 60"], timeout=1.0)
    assert is_echo(answers[1], "look")
    assert [isinstance(one, WorkerError) and (one.suspect, one.bystander) for one in answers[::2]] in (
        [(True, False), (False, True)],
        [(False, True), (True, False)],  # both were late
    )


def test_a_file_is_run_once_though_all_threads_need_it_at_once(tmp_path):
    file = tmp_path / "slow.py"
    file.write_text(SLOW_FILE.format(folder=str(FILE.parent)))

    async def run():

        async with WorkerSeats(f"{file}:Slow", limit=6, workers=1) as seats, contextlib.AsyncExitStack() as stack:
            await begun(seats, stack, 6)
            return seats.pids

    [worker] = asyncio.run(run())
    assert file.with_suffix(".log").read_text().split().count(str(worker)) == 1


@pytest.mark.deep
@pytest.mark.parametrize("cls, share", [("Faulty", 1), ("Outside", 0)])
def test_the_column_has_what_turns_waited_for_a_neighbour_that_was_never_answered(cls, share):
    async def run():
        seats = WorkerSeats(f"{FILE}:{cls}", limit=3, workers=1, timeout=1.0)
        async with seats, contextlib.AsyncExitStack() as stack:
            taken = await begun(seats, stack, 3)
            seats.figures()
            steps = (seat.step(action) for seat, action in zip(taken, ("sleep 60", "look", "look"), strict=True))
            await asyncio.gather(*steps, return_exceptions=True)
            return seats.figures()["behind_seconds"]

    assert asyncio.run(run()) == pytest.approx(2 * 1.2 * share, abs=0.7)
