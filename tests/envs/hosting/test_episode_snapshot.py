"""Where a search goes back to a place, and the episode goes on from another one."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest
from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.hosting.handle.env_handle import EnvError
from manyturn.envs.hosting.local.seats import InlineSeats, Seats, WorkerSeats

DOORS = f"{Path(__file__).parents[2] / 'trainers' / 'doors.py'}:Doors"  # which has no save()
COST = [{"name": "turn_cost", "cost": 0.25}]
CASES = {
    "state": ("manyturn/Maze-v0", {}, []),
    "state within a wrapper": ("manyturn/Maze-v0", {}, COST),
    "replayed": (DOORS, {}, []),
    "drawn at each turn": ("manyturn/Household-v0", {"difficulty": "tiny"}, []),
}
DRIFT = """
import manyturn as mt

COUNT = [0]

class Drift(mt.TextEnv):
    max_turns = 5

    def tasks(self, split):
        return [mt.Task(f"{split}/{n}", split, {"n": n}) for n in range(4)]

    def begin(self, task, rng):
        return "Begin."

    def respond(self, action):
        COUNT[0] += 1
        return self.go_on(f"Answer {COUNT[0]}.")
"""


async def twice(seats: Seats) -> tuple[list, list]:
    """The rest of an episode from its second turn, before and after it goes back there."""
    async with seats.take() as seat:
        step = await seat.reset(seats.tasks("train")[1], seed=5)
        for _ in range(2):
            step = await seat.step(await seat.expert())
        left, snapshot, rests = step, await seat.snapshot(), list[list]()
        for _ in range(2):
            rest = [step]
            while not step.ended:
                step = await seat.step(await seat.expert())
                rest.append(step)
            rests.append(rest)
            step = await seat.restore(snapshot)
            assert step == left
    return rests[0], rests[1]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [InlineSeats, WorkerSeats])
def test_an_episode_goes_on_from_a_snapshot_as_it_did(case, kind):
    async def both():
        async with kind(*CASES[case], limit=1) as seats:
            return await twice(seats)

    first, second = asyncio.run(both())
    assert first == second and len(first) > 2 and first[-1].ended


@pytest.mark.skipif(find_spec("wsproto") is None, reason="no hosts: pip install 'manyturn[hosts]'")
def test_a_snapshot_holds_at_a_host_too():
    from elsewhere import hosting

    from manyturn.envs.hosting.remote.hosted_seats import HostedSeats, Hosts

    async def there():
        async with hosting(1, env=DOORS) as urls, HostedSeats(DOORS, None, [], 1, Hosts(urls, wait=60.0)) as seats:
            return await twice(seats)

    async def here():
        async with InlineSeats(DOORS) as seats:
            return await twice(seats)

    assert asyncio.run(there()) == asyncio.run(here())


def test_an_environment_that_strays_is_an_error_and_no_other_episode(tmp_path):
    (tmp_path / "drift.py").write_text(DRIFT)

    async def stray():
        async with InlineSeats(f"{tmp_path}/drift.py:Drift") as seats, seats.take() as seat:
            await seat.reset(seats.tasks("train")[0], seed=1)
            await seat.step("a")
            snapshot = await seat.snapshot()
            await seat.step("b")
            with pytest.raises(EnvError, match="manyturn check"):
                await seat.restore(snapshot)
            with pytest.raises(ResetNeeded):
                await seat.step("c")

    asyncio.run(stray())


def test_state_that_save_leaves_out_is_seen(monkeypatch):
    from manyturn.envs.classics.maze import Maze

    monkeypatch.setattr(Maze, "load", lambda self, data: None)
    assert Maze.save is not TextEnv.save

    async def forgetful():
        async with InlineSeats("manyturn/Maze-v0") as seats:
            await twice(seats)

    with pytest.raises(EnvError, match="save"):
        asyncio.run(forgetful())
