"""Where a host's fault reached an episode: a reward that nobody earned, a turn played twice, an episode of another."""

import asyncio
import math
import signal
from collections.abc import Callable
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no hosts: pip install 'manyturn[hosts]'", allow_module_level=True)

from elsewhere import HostProcess, Wire, host_processes, hosting, lying

from manyturn.envs.contract.env.text_env import Unsupported
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.envs.hosting.handle.messages import step_to_wire
from manyturn.envs.hosting.local.seats import InlineSeats, Seats
from manyturn.envs.hosting.local.worker import WorkerError
from manyturn.envs.hosting.remote.connection import HostRefused
from manyturn.envs.hosting.remote.host_protocol import error_to_wire
from manyturn.envs.hosting.remote.hosted_seats import HostedSeats, Hosts, HostsLost

pytestmark = pytest.mark.versions

FILE = Path(__file__).parents[2] / "faulty.py"
FAULTY = f"{FILE}:Faulty"
MAZE = "manyturn/Maze-v0"
ACTIONS = ("look", "  ", "naïve 🙂 \ud83d\ude00 \udcff\n\u2028", "x" * 100_000, "big 10", "win")
SLOW = ("look", "sleep 0.01", "  ", "sleep 0.02", "go", "win")


def seats_at(*urls: str, env: str = FAULTY, limit: int = 4, wait: float = 60.0, **options: Any) -> HostedSeats:
    wrappers = [{"name": "turn_cost", "cost": 0.5}]
    return HostedSeats(env, None, wrappers, limit, Hosts(urls, wait=wait, **options))


class Halt:
    """Stops the first episodes, one for each seat, after two turns, until all stand there and the test has acted."""

    def __init__(self, episodes: int):
        self.episodes, self.reached, self.over = episodes, asyncio.Barrier(episodes + 1), asyncio.Event()

    async def halt(self, number: int, turn: int) -> None:
        if number < self.episodes and turn == 2:
            await self.reached.wait()
            await self.over.wait()


async def play(seats: Seats, number: int, actions=ACTIONS, halt: Halt | None = None) -> list[Answer]:
    async with seats.take() as seat:
        steps = [await seat.reset(seats.tasks("train")[number], seed=number * 7)]
        for turn, action in enumerate(actions):
            if halt is not None:
                await halt.halt(number, turn)
            assert await seat.expert() == "win"
            steps.append(await seat.step(action))
        return steps


async def play_all(seats: Seats, count: int = 12, actions=ACTIONS, halt: Halt | None = None) -> list[list[Answer]]:
    return await asyncio.gather(*(play(seats, number, actions, halt) for number in range(count)))


def undisturbed(count: int = 12, actions=ACTIONS) -> list[list[Answer]]:
    async def here():
        async with InlineSeats(FAULTY, None, [{"name": "turn_cost", "cost": 0.5}], limit=3) as seats:
            return await play_all(seats, count, actions)

    return asyncio.run(here())


@pytest.mark.parametrize("hosts", [1, 3])
def test_episodes_at_any_number_of_hosts_are_those_of_this_process(hosts):
    async def elsewhere():
        async with hosting(hosts, env=FAULTY) as urls, seats_at(*urls) as seats:
            found = await play_all(seats)
            shares = seats.figures()
        assert [shares[f"host_{n}/episodes_there"] > 0 for n in range(1, hosts + 1)] == [True] * hosts
        return found

    assert asyncio.run(elsewhere()) == undisturbed()


@pytest.mark.deep
def test_a_killed_host_changes_no_episode_and_one_that_comes_back_is_used():
    with host_processes(2, FAULTY, "--workers", "1") as hosts:
        workers = []

        async def play_on():
            async with seats_at(*(one.url for one in hosts), limit=6) as seats:
                halt = Halt(6)
                playing = asyncio.create_task(play_all(seats, 12, SLOW, halt))
                await halt.reached.wait()
                workers.extend(psutil.Process(hosts[0].process.pid).children(recursive=True))
                hosts[0].kill()
                halt.over.set()
                found, lost = await playing, seats.figures()
                hosts.append(HostProcess(FAULTY, "--workers", "1", port=hosts[0].port))
                assert await asyncio.to_thread(lambda: hosts[2].url) == hosts[0].url
                hosts[1].kill()
                again = await play_all(seats, 12, SLOW)
                return found, lost, again

        found, lost, again = asyncio.run(play_on())
        assert found == again == undisturbed(12, SLOW)
        assert lost["moved_episodes"] and lost["lost_hosts"] == 1
    assert workers and not psutil.wait_procs(workers, 60)[1]


@pytest.mark.deep
def test_a_host_that_stands_still_is_left_and_its_late_answers_reach_nobody():
    with host_processes(2, FAULTY, "--workers", "0") as hosts:

        async def play_on():
            async with seats_at(*(one.url for one in hosts), silence=1.0) as seats:
                halt = Halt(4)
                playing = asyncio.create_task(play_all(seats, 8, SLOW, halt))
                await halt.reached.wait()
                hosts[0].kill(signal.SIGSTOP)
                halt.over.set()
                found = await playing
                hosts[0].kill(signal.SIGCONT)
                return found, await play_all(seats, 8, SLOW), seats.figures()["moved_episodes"]

        found, again, moved = asyncio.run(play_on())
        assert found == again == undisturbed(8, SLOW) and moved


@pytest.mark.deep
@pytest.mark.parametrize("harm", ["cut", "hold"])
def test_a_torn_or_stuck_connection_loses_nothing(harm):
    async def play_on():
        async with hosting(env=FAULTY) as [url], Wire(url) as wire:
            faults = [30_000, 150_000]  # bytes; more than three in one turn would be an error

            def harm_now() -> None:
                if faults and wire.passed > faults[0]:
                    faults.pop(0)
                    getattr(wire, harm)()

            wire.joined = wire.flow  # the driver has given up the connection that was held, and made another

            async with seats_at(wire.url, silence=1.0) as seats:
                wire.watch = harm_now
                found = await play_all(seats, 4, ("look", "x" * 20_000, "win"))
                moved = seats.figures()["moved_episodes"]
                wire.watch = wire.joined = lambda: None
            assert moved and not faults
            return found

    assert asyncio.run(play_on()) == undisturbed(4, ("look", "x" * 20_000, "win"))


def forged(**fields: Any) -> Callable[[dict[str, Any]], list[Any]]:
    """Answers of a host that would pay for nothing."""
    sound = Answer("paid", 1.0, True, False, parts={"outcome": 1.0}, measures={})
    return lambda asked: [{"id": asked["id"], "value": step_to_wire(sound._replace(**fields))}]


LIES: dict[str, Callable[[dict[str, Any]], list[Any]]] = {
    "no JSON": lambda asked: [b"\x00\xff{\n"],
    "text": lambda asked: ['{"id": 1, "value": []}\n'],
    "half a message": lambda asked: [b'{"id": 1, "val'],
    "nested": lambda asked: [b'{"id": ' + b"[" * 200_000 + b"\n"],
    "no number": lambda asked: [{"value": None}],
    "another's number": lambda asked: [{"id": asked["id"] + 1000, "value": "win"}],
    "unhashable number": lambda asked: [{"id": [asked["id"]], "value": "win"}],
    "nothing said": lambda asked: [{"id": asked["id"]}],
    "hangs up": lambda asked: [None],
    "no list": lambda asked: [{"id": asked["id"], "value": {"reward": 1.0}}],
    "short": lambda asked: [{"id": asked["id"], "value": ["paid", 1.0]}],
    "text as a reward": forged(reward="1.0"),
    "infinite": forged(reward=math.inf),
    "a flag as a reward": forged(reward=True),
    "parts": forged(parts={"outcome": "1"}),
    "a number as text": forged(observation=5),
    "strange error": lambda asked: [{"id": asked["id"], "error": {"kind": "SystemExit", "message": "0"}}],
    "no error": lambda asked: [{"id": asked["id"], "error": None}],
    "twice": lambda asked: 2 * forged(observation="once")(asked) if asked["op"] == "step" else forged()(asked),
}


@pytest.mark.parametrize("lie", LIES)
def test_nonsense_from_a_host_is_never_a_reward(lie):
    """Alone it ends the episode as an error; next to a sound host it is as if it were not there."""

    async def alone():
        async with lying(LIES[lie]) as url, seats_at(url, limit=1, wait=1.0) as seats, seats.take() as seat:
            await seat.reset(seats.tasks("train")[0], seed=0)
            for _ in range(5):  # each of these is answered twice, and the second time ends it
                await seat.step("win")
                await asyncio.sleep(0.05)
                assert lie == "twice"

    with pytest.raises((WorkerError, HostsLost)):
        asyncio.run(alone())


def test_a_lying_host_next_to_a_sound_one_changes_nothing():
    async def both():
        liar = lying(LIES["text as a reward"])
        async with liar as false, hosting(env=FAULTY) as [url], seats_at(false, url, limit=2) as seats:
            return await play_all(seats, 4)

    assert asyncio.run(both()) == undisturbed(4)


def test_errors_of_an_environment_stay_its_own():
    async def raise_there():
        async with hosting(env=FAULTY) as urls, seats_at(*urls) as seats, seats.take() as seat:
            await seat.reset(seats.tasks("train")[0], seed=0)
            with pytest.raises(EnvError, match=r"raised in step 1 of train/0 .*broken on purpose"):
                await seat.step("raise")
            assert (await seat.reset(seats.tasks("train")[1], seed=0)).observation.startswith("hello 1 ")
            assert seats.figures()["moved_episodes"] == 0
        stranger = f"{FILE}:Stranger"
        async with hosting(env=stranger) as urls, seats_at(*urls, env=stranger) as seats, seats.take() as seat:
            await seat.reset(seats.tasks("train")[0], seed=0)
            with pytest.raises(Unsupported, match="has no expert"):
                await seat.expert()
            assert (await seat.step("win")).success is True

    asyncio.run(raise_there())


def test_a_host_where_every_episode_fails_does_not_draw_all_of_them_to_itself():
    """Its disk is full, say: it fails at once, so that it always has most room."""
    failed = {"error": error_to_wire(EnvError("No space left on device"))}

    async def play_on():
        full, errors, found = lying(lambda asked: [{"id": asked["id"], **failed}]), 0, []
        async with full as first, hosting(env=FAULTY) as [url], seats_at(first, url) as seats:
            for number in range(8):
                try:
                    found.append(await play(seats, number))
                except EnvError:
                    errors += 1
                    found.append(await play(seats, number))
        return found, errors

    assert asyncio.run(play_on()) == (undisturbed(8), 8)


def test_a_task_that_no_message_can_hold_ends_no_other_episode():
    async def play_on():
        async with hosting(env=FAULTY) as urls, seats_at(*urls) as seats, seats.take() as seat:
            await seat.reset(seats.tasks("train")[0], seed=0)
            async with seats.take() as other:
                with pytest.raises(TypeError, match="set is not JSON serializable"):
                    await other.reset(Task("train/x", "train", {"of": {1}}), seed=0)
            assert (await seat.step("win")).success is True
            return seats.figures()

    figures = asyncio.run(play_on())
    assert (figures["moved_episodes"], figures["lost_hosts"]) == (0, 0)


def test_arguments_that_no_message_can_hold_are_refused_before_a_host_is_asked():
    with pytest.raises(ValueError, match=r"^env.args cannot be sent to a host: .*date.*: give plain JSON values$"):
        HostedSeats(FAULTY, {"greeting": date(2026, 1, 1)}, (), 1, Hosts(["http://127.0.0.1:9"]))


def test_an_environment_that_goes_another_way_elsewhere_is_an_error(tmp_path):
    """Its episodes are not determined by task, seed and actions, so that it cannot go on at another host."""
    (tmp_path / "clocked.py").write_text(
        "import time\nimport manyturn as mt\n\n\nclass Clocked(mt.TextEnv):\n"
        "    instructions = 'Wait.'\n"
        "    def tasks(self, split): return [mt.Task(f'{split}/0', split, {'n': split})]\n"
        "    def begin(self, task, rng): return 'begin'\n"
        "    def respond(self, action): return self.go_on(str(time.monotonic_ns()))\n"
    )
    env = f"{tmp_path / 'clocked.py'}:Clocked"

    async def move():
        async with hosting(env=env) as [url], Wire(url) as wire:
            seats = seats_at(wire.url, env=env)
            async with seats, seats.take() as seat:
                await seat.reset(seats.tasks("train")[0], seed=0)
                await seat.step("wait")
                wire.cut()
                await seat.step("wait")

    with pytest.raises(WorkerError, match="answered something else at step 1 of the same episode"):
        asyncio.run(move())


def test_without_a_host_the_run_ends_with_what_to_do():
    async def lose():
        with host_processes(1, FAULTY, "--workers", "0") as [only]:
            async with seats_at(only.url, wait=1.0) as seats, seats.take() as seat:
                await seat.reset(seats.tasks("train")[0], seed=0)
                only.kill()
                await seat.step("look")

    with pytest.raises(HostsLost, match=r"no host had room .* within 1 s \(http://127.0.0.1:\d+: .*--resume RUN"):
        asyncio.run(lose())


def test_a_second_run_is_refused_while_the_first_one_plays():
    async def two():
        async with hosting(env=FAULTY) as urls, seats_at(*urls) as first:
            with pytest.raises(HostsLost, match=r"plays for another driver: wait until that has ended"):
                async with seats_at(*urls, wait=0.3):
                    pass
            return await play_all(first, 4)

    assert asyncio.run(two()) == undisturbed(4)


def test_the_next_run_finds_the_host_as_if_nobody_had_been_there():
    async def turns():
        async with hosting(env=FAULTY) as urls:
            async with seats_at(*urls) as seats, seats.take() as seat:
                await seat.reset(seats.tasks("train")[0], seed=0)
            async with seats_at(*urls) as seats:
                return await play_all(seats, 4)

    assert asyncio.run(turns()) == undisturbed(4)


def test_hosts_without_room_for_what_is_to_be_open_are_refused_at_once():
    async def crowd():
        async with hosting(2, env=FAULTY, limit=3) as urls, seats_at(*urls, limit=7, wait=3600.0):
            pass

    with pytest.raises(HostRefused, match=r"7 episodes .* hosts hold 6: .*concurrency = 6"):
        asyncio.run(crowd())
