"""Where episodes run must not change them, and no fault of one may reach another or become a reward."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.text_env import Unsupported
from manyturn.envs.contract.registration.id_registration import register
from manyturn.envs.contract.wrappers.reward_wrapper import WrapperMismatch
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.envs.hosting.local.seats import InlineSeats, Seats, WorkerSeats, open_seats
from manyturn.envs.hosting.local.worker import WorkerError

pytestmark = pytest.mark.versions

FILE = Path(__file__).parents[2] / "faulty.py"
FAULTY = f"{FILE}:Faulty"
STRANGER = f"{FILE}:Stranger"
ACTIONS = ("look", "  ", "naïve 🙂 \ud83d\ude00 \udcff\n\u2028", "x" * 100_000, "big 10", "win")


async def play(seats: Seats, number: int, actions=ACTIONS) -> list[Answer]:
    async with seats.take() as seat:
        steps = [await seat.reset(seats.tasks("train")[number], seed=number * 7)]
        for action in actions:
            steps.append(await seat.step(action))
            if steps[-1].ended:
                break
        return steps


async def play_many(seats: Seats, count: int) -> list[list[Answer]]:
    async with seats:
        return await asyncio.gather(*(play(seats, i) for i in range(count)))


def children() -> set[int]:
    return {p.pid for p in psutil.Process().children(recursive=True)}


def started_since(before: set[int]) -> set[int]:
    """Processes that these tests started, and not those of what ran before, such as a browser that tests share."""
    found = set()
    for process in psutil.Process().children():
        if process.pid not in before:
            with contextlib.suppress(psutil.NoSuchProcess):
                found |= {process.pid, *(child.pid for child in process.children(recursive=True))}
    return found


@pytest.fixture(autouse=True)
def no_process_is_left():
    before = children()
    yield
    deadline = time.monotonic() + 30
    while started_since(before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not started_since(before)


def test_an_episode_is_the_same_inline_and_in_any_number_of_workers():
    wrappers = [{"name": "turn_cost", "cost": 0.5}]
    inline = asyncio.run(play_many(InlineSeats(FAULTY, {"greeting": "hé"}, wrappers, limit=3), 12))
    for workers in (1, 4):
        apart = asyncio.run(play_many(WorkerSeats(FAULTY, {"greeting": "hé"}, wrappers, 5, workers), 12))
        assert apart == inline
    assert inline[0] != inline[1]
    assert inline[0][2].parts == {"turn": -0.5}
    assert inline[0][-1].success is True


@pytest.mark.parametrize("workers", [0, 2])
def test_no_process_opens_more_episodes_than_its_environment_can_hold(workers):
    seats = open_seats(f"{FILE}:Scarce", limit=8, workers=workers)
    assert seats.limit == 2 * max(workers, 1)
    assert all(steps[-1].success for steps in asyncio.run(play_many(seats, 8)))


def test_a_foreign_environment_is_the_same_in_a_worker():
    async def run(workers: int):
        async with open_seats(STRANGER, workers=workers, limit=2) as seats:
            return await asyncio.gather(*(play(seats, i, ("abc", "TOO LONG", "win")) for i in range(4)))

    inline = asyncio.run(run(0))
    assert inline == asyncio.run(run(1))
    assert [step.understood for step in inline[0]] == [True, True, False, True]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("action", ["raise", "exit", "endless"])
def test_an_environment_that_raises_is_an_error_and_its_neighbour_goes_on(workers, action):
    async def run():
        async with open_seats(FAULTY, workers=workers, limit=2) as seats:
            task = seats.tasks("train")[0]
            async with seats.take() as broken, seats.take() as sound:
                await broken.reset(task, 1)
                first = await sound.reset(task, 1)
                with pytest.raises(EnvError):
                    await broken.step(action)
                with pytest.raises(ResetNeeded):
                    await broken.step("look")
                assert (await sound.step("look")).observation.startswith("look ")
                assert await broken.reset(task, 1) == first
            return len(getattr(seats, "pids", [0]))

    assert asyncio.run(run()) == 1


def test_the_trace_of_an_error_in_a_worker_reaches_the_caller():
    async def run():
        async with WorkerSeats(FAULTY, workers=1) as seats:
            await play(seats, 0, ("raise",))

    with pytest.raises(EnvError) as caught:
        asyncio.run(run())
    assert "broken on purpose" in str(caught.value)
    assert "in respond" in caught.value.__notes__[0]


@pytest.mark.deep
@pytest.mark.parametrize("action", ["sleep", "spin"])
def test_a_hung_environment_is_freed_in_time_and_later_answers_are_the_right_ones(action):
    timeout = 1.0

    async def run():
        async with WorkerSeats(FAULTY, limit=3, workers=1, timeout=timeout) as seats:
            expected = await play(seats, 2)
            async with seats.take() as hung, seats.take() as neighbour:
                await hung.reset(seats.tasks("train")[0], 0)
                await neighbour.reset(seats.tasks("train")[1], 0)
                both = await asyncio.gather(hung.step(action), neighbour.step("look"), return_exceptions=True)
                assert [type(result) for result in both] == [WorkerError, WorkerError]
                assert "no answer to 'step'" in str(both[0]) or "it hung at faulty.py, line" in str(both[0])
                with pytest.raises(ResetNeeded):
                    await neighbour.step("look")
            assert await play(seats, 2) == expected

    asyncio.run(run())


@pytest.mark.deep
def test_many_slow_turns_on_one_worker_are_not_late_for_standing_in_line():
    async def run():
        async with WorkerSeats(FAULTY, limit=8, workers=1, timeout=2.0) as seats:
            return await asyncio.gather(*(play(seats, i, ("sleep 0.4", "win")) for i in range(8)))

    assert all(steps[-1].success for steps in asyncio.run(run()))


def test_who_waits_outside_of_the_process_holds_up_no_neighbour(tmp_path):
    """One episode slept 45 s in a container, and the others of its worker with it."""
    gate = tmp_path / "gate"

    async def run(cls: str):
        async with WorkerSeats(f"{FILE}:{cls}", limit=3, workers=1) as seats:
            slow = asyncio.create_task(play(seats, 0, ("look", f"wait {gate}", "win")))
            while not gate.with_name("gate.begun").exists():
                await asyncio.sleep(0.01)
            others = [asyncio.create_task(play(seats, number)) for number in (1, 2)]
            done, _ = await asyncio.wait(others, timeout=1 if cls == "Faulty" else 30)
            gate.touch()
            episodes = await asyncio.gather(slow, *others)
            return len(done), episodes, seats.figures()["behind_seconds"], seats.figures()["behind_seconds"]

    done, expected, behind, _ = asyncio.run(run("Faulty"))
    assert done == 0 and behind > 1.9
    for file in tmp_path.iterdir():
        file.unlink()
    done, episodes, behind, later = asyncio.run(run("Outside"))
    assert (done, later) == (2, 0) and behind < 0.1
    assert episodes == expected  # the same bits, whatever the threads do


def test_one_of_several_threads_that_hangs_is_the_only_suspect():
    async def run():
        async with WorkerSeats(f"{FILE}:Outside", limit=3, workers=1, timeout=4) as seats:
            async with seats.take() as late, seats.take() as neighbour:
                for seat, task in zip((late, neighbour), seats.tasks("train"), strict=False):
                    await seat.reset(task, 0)
                first = asyncio.create_task(late.step("sleep 60"))
                await asyncio.sleep(1)
                lost = await asyncio.gather(first, neighbour.step("sleep 60"), return_exceptions=True)
            assert [(type(one), one.suspect, one.bystander) for one in lost] == [
                (WorkerError, True, False),
                (WorkerError, False, True),
            ]
            assert (await play(seats, 2))[-1].success

    asyncio.run(run())


def test_a_busy_parent_does_not_take_an_answer_for_late():
    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1, timeout=0.5) as seats, seats.take() as seat:
            await seat.reset(seats.tasks("train")[0], 0)
            answer = asyncio.create_task(seat.step("look"))
            await asyncio.sleep(0)
            time.sleep(1.5)  # this process does something else for longer than the deadline
            return await answer

    assert asyncio.run(run()).observation.startswith("look ")


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSEGV])
def test_the_death_of_a_worker_costs_its_own_episodes_only(sign):
    async def run():
        async with WorkerSeats(FAULTY, limit=4, workers=2) as seats:
            expected = await play(seats, 3)
            async with contextlib.AsyncExitStack() as stack:
                taken = [await stack.enter_async_context(seats.take()) for _ in range(4)]
                for seat in taken:
                    await seat.reset(seats.tasks("train")[3], 21)
                os.kill(seats.pids[0], sign)
                results = await asyncio.gather(*(seat.step("look") for seat in taken), return_exceptions=True)
                assert [type(r) for r in results].count(WorkerError) == 2
                assert [r for r in results if isinstance(r, Answer)] == [expected[1]] * 2
                lost = taken[next(i for i, r in enumerate(results) if isinstance(r, WorkerError))]
                assert await lost.reset(seats.tasks("train")[3], 21) == expected[0]
                assert await lost.step("look") == expected[1]

    asyncio.run(run())


def test_a_stopped_worker_is_replaced():
    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1, timeout=0.5) as seats:
            expected = await play(seats, 0)
            os.kill(seats.pids[0], signal.SIGSTOP)
            with pytest.raises(WorkerError):
                await play(seats, 0)
            assert await play(seats, 0) == expected

    asyncio.run(run())


def test_an_environment_that_ends_the_process_is_a_worker_error():
    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1) as seats:
            with pytest.raises(WorkerError, match="it died; exit status 9"):
                await play(seats, 0, ("die",))
            assert (await play(seats, 0))[-1].success

    asyncio.run(run())


def test_prints_and_input_of_an_environment_do_not_touch_the_messages():
    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1) as seats:
            steps = await play(seats, 0, ("print", "look"))
            with pytest.raises(EnvError, match="EOFError"):
                await play(seats, 0, ("input",))
            return steps

    steps = asyncio.run(run())
    assert steps[1].observation.startswith("print ") and steps[2].observation.startswith("look ")


def test_observations_of_ten_megabytes_pass():
    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1) as seats:
            return await play(seats, 0, ("big 10000000", "win"))

    assert asyncio.run(run())[1].observation == "é" * 10_000_000


def test_a_cancelled_request_does_not_leave_its_answer_to_the_next_one():
    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1) as seats:
            expected = await play(seats, 1)
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(play(seats, 0, ("sleep 0.2",)), 0.1)
                assert await play(seats, 1) == expected

    asyncio.run(run())


@pytest.mark.deep
@pytest.mark.parametrize("end", ["look", "die", "freeze"])
def test_what_an_environment_started_ends_with_its_worker(end, tmp_path):
    fled = tmp_path / "fled"

    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1, timeout=2.0) as seats, seats.take() as seat:
            await seat.reset(seats.tasks("train")[0], 0)
            await seat.step("spawn")
            await seat.step(f"flee {fled}")
            worker = psutil.Process(seats.pids[0])
            started = [p for p in worker.parent().children(recursive=True) if p != worker]
            assert int(fled.read_text()) in [p.pid for p in started]
            with contextlib.suppress(WorkerError):
                await seat.step(end)
            return started

    started = asyncio.run(run())
    assert len(started) == 2 and not psutil.wait_procs(started, timeout=30)[1]


def test_a_worker_whose_keeper_was_killed_is_replaced_and_leaves_nothing_in_its_group():
    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1) as seats:
            await play(seats, 0, ("spawn",))
            worker = psutil.Process(seats.pids[0])
            left = [worker, *worker.children()]
            os.kill(worker.ppid(), signal.SIGKILL)
            async with asyncio.timeout(60):
                while seats.pids:
                    await asyncio.sleep(0.01)
            assert (await play(seats, 0, ("win",)))[-1].success
            return left

    left = asyncio.run(run())
    assert len(left) == 2 and not psutil.wait_procs(left, timeout=30)[1]


def test_pipes_that_a_left_process_holds_make_no_noise_after_the_event_loop(tmp_path, monkeypatch):
    """It would be ``Exception ignored in ... RuntimeError: Event loop is closed`` below the last line of a command."""
    fled, noise = tmp_path / "fled", []
    monkeypatch.setattr(sys, "unraisablehook", noise.append)

    async def run():
        async with WorkerSeats(FAULTY, limit=1, workers=1) as seats:
            await play(seats, 0, (f"flee {fled}",))
            os.kill(psutil.Process(seats.pids[0]).ppid(), signal.SIGKILL)

    try:
        asyncio.run(run())
        gc.collect()
        assert psutil.pid_exists(int(fled.read_text()))
        assert [str(found.exc_value) for found in noise] == []
    finally:
        os.kill(int(fled.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_that_raises_when_it_is_closed_costs_nothing(workers, recwarn):
    assert asyncio.run(play_many(open_seats(f"{FILE}:Clinging", workers=workers, limit=2), 3)) == asyncio.run(
        play_many(open_seats(FAULTY, limit=2), 3)
    )
    assert all("raised in close: OSError: it sticks" in str(warning.message) for warning in recwarn)
    assert len(recwarn) == 1


def test_an_inline_environment_that_raises_cancelled_error_does_not_cancel_who_plays():
    async def run():
        async with InlineSeats(FAULTY, limit=1) as seats:
            with pytest.raises(EnvError, match="CancelledError"):
                await play(seats, 0, ("cancel",))
            return await play(seats, 0, ("win",))

    assert asyncio.run(run())[-1].success


@pytest.mark.deep
@pytest.mark.parametrize("last", ["look", "freeze"])
def test_nothing_outlives_a_parent_that_was_killed(last, tmp_path):
    fled = tmp_path / "fled"
    script = tmp_path / "parent.py"
    script.write_text(
        "import asyncio\n"
        "from manyturn.envs.hosting.local.seats import WorkerSeats\n"
        "async def main():\n"
        f"    async with WorkerSeats({FAULTY!r}, workers=1, limit=1, timeout=2) as seats, seats.take() as seat:\n"
        "        await seat.reset(seats.tasks('train')[0], 0)\n"
        f"        await seat.step('flee {fled}')\n"
        "        print(seats.pids[0], flush=True)\n"
        f"        await seat.step({last!r})\n"
        "        await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        left = [worker, worker.parent(), psutil.Process(int(fled.read_text()))]
        time.sleep(0.2)
        parent.kill()
    assert not psutil.wait_procs(left, timeout=60)[1]


def test_seats_are_limited_and_used_again():
    async def run(workers: int):
        most = now = 0

        async def episode(seats):
            nonlocal most, now
            async with seats.take() as seat:
                now += 1
                most = max(most, now)
                await seat.reset(seats.tasks("test")[0], 0)
                await asyncio.sleep(0.001)
                assert await seat.expert() == "win"
                now -= 1

        async with open_seats(FAULTY, limit=3, workers=workers) as seats:
            await asyncio.gather(*(episode(seats) for _ in range(20)))
        with pytest.raises(RuntimeError, match="closed"):
            await episode(seats)
        return most

    assert asyncio.run(run(0)) == 3
    assert asyncio.run(run(2)) == 3


@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_that_cannot_be_made_again_is_an_env_error(workers, tmp_path):
    async def run():
        kwargs = {"log": str(tmp_path / "made"), "most": 1 + workers}
        async with open_seats(f"{FILE}:Unmakeable", kwargs, limit=2, workers=workers) as seats, seats.take() as one:
            await one.reset(seats.tasks("train")[0], 0)
            async with seats.take() as two:
                await two.reset(seats.tasks("train")[0], 0)

    with pytest.raises(EnvError, match="no other one"):
        asyncio.run(run())


@pytest.mark.parametrize("workers", [0, 1])
def test_a_fault_of_the_recipe_is_not_blamed_on_the_environment(workers):
    async def run():
        async with open_seats(STRANGER, None, [{"name": "progress_reward"}], workers=workers) as seats:
            await play(seats, 0)

    with pytest.raises(WrapperMismatch, match="override progress"):
        asyncio.run(run())


@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_without_expert_says_so(workers):
    async def run():
        async with open_seats(STRANGER, workers=workers) as seats, seats.take() as seat:
            assert not seats.facts.has_expert
            await seat.reset(seats.tasks("train")[0], 0)
            with pytest.raises(Unsupported, match="no expert"):
                await seat.expert()
            assert (await seat.step("abc")).reward == 0.25

    asyncio.run(run())


def test_a_worker_knows_ids_that_this_process_registered(tmp_path, monkeypatch):
    (tmp_path / "mine_for_worker.py").write_text(FILE.read_text())
    monkeypatch.syspath_prepend(str(tmp_path))
    register("seatstest/Mine-v0", "mine_for_worker:Faulty", greeting="mine")

    async def run():
        async with WorkerSeats("seatstest/Mine-v0", workers=1) as seats:
            return await play(seats, 0)

    assert asyncio.run(run())[0].observation.startswith("mine ")


def test_a_name_that_does_not_exist_is_found_before_any_process_starts():
    with pytest.raises(ValueError, match="did you mean"):
        open_seats("manyturn/Mase-v0", workers=4)
