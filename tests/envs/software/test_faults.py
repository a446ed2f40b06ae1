"""When the sandbox, its engine or its client is gone, that is an error of the episode and never a reward."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from small import Small

from manyturn.containers.engine.container_engine import LABEL, client
from manyturn.containers.sandbox import EngineUnavailable, SandboxLost
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.envs.hosting.local.seats import Seat, WorkerSeats
from manyturn.envs.hosting.local.worker import WorkerError
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.toolset import ToolFault

SMALL = f"{Path(__file__).with_name('small.py')}:Small"
ACTIONS = [
    call_text("bash", command="cd calc && echo > new.py"),
    call_text("test"),
    call_text("edit", path="core.py", old="a - b", new="a + b"),
    call_text("submit"),
]


def containers(pid: int) -> list[str]:
    """Ids of the containers that a process has."""
    found = client().containers(all=True, filters={"label": [f"{LABEL}=1", f"manyturn.pid={pid}"]})
    return [one["Id"] for one in found]


def gone(pid: int, seconds: float = 20.0) -> bool:
    last = time.monotonic() + seconds
    while containers(pid) and time.monotonic() < last:
        time.sleep(0.1)
    return not containers(pid)


@asynccontextmanager
async def one_seat() -> AsyncIterator[tuple[WorkerSeats, Seat]]:
    seats = WorkerSeats(SMALL, limit=1, workers=1)
    async with seats, seats.take() as seat:
        yield seats, seat


async def played(seats: WorkerSeats, seat: Seat) -> list[Answer]:
    task = seats.tasks("test")[0]
    return [await seat.reset(task, 7)] + [await seat.step(action) for action in ACTIONS]


def killed(container: str) -> None:
    client().kill(container)


def removed(container: str) -> None:
    client().remove_container(container, force=True)


def without_server(container: str) -> None:
    """The tool server alone, as the system would kill it; where the engine is elsewhere, as by the engine."""
    server = client().inspect_container(container)["State"]["Pid"]
    try:
        os.kill(server, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        client().kill(container)


@pytest.mark.deep
@pytest.mark.parametrize(("turn", "harm"), [(0, killed), (1, removed), (1, without_server), (3, killed)])
def test_a_lost_sandbox_is_an_error_and_the_same_episode_can_be_played_again(
    engine: str, turn: int, harm: Callable[[str], None]
) -> None:
    async def run() -> None:
        async with one_seat() as (seats, seat):
            undisturbed = await played(seats, seat)
            assert undisturbed[-1].success
            await seat.reset(seats.tasks("test")[0], 7)
            for action in ACTIONS[:turn]:
                await seat.step(action)
            (pid,) = seats.pids
            for container in containers(pid):
                harm(container)
            with pytest.raises(EnvError, match="SandboxLost"):
                for action in ["bash true", *ACTIONS[turn:]]:
                    await seat.step(action)
            assert await played(seats, seat) == undisturbed
        assert gone(pid)

    asyncio.run(run())


@pytest.mark.deep
def test_a_killed_client_leaves_no_container(engine: str) -> None:
    async def run() -> None:
        async with one_seat() as (seats, seat):
            await seat.reset(seats.tasks("test")[0], 7)
            (pid,) = seats.pids
            assert containers(pid)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(WorkerError):
                await seat.step(ACTIONS[0])
            assert (await played(seats, seat))[-1].success
            assert gone(pid)  # and one that was just being made is removed by whoever starts next

    asyncio.run(run())


def test_an_engine_that_has_gone_is_an_error_of_the_reset(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = Small()
    env.reset(seed=0)
    (container,) = {env._work.workspace._sandbox.name}  # type: ignore[union-attr]  # to be sure that it is this one
    client().kill(container)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/s.sock")
    with pytest.raises(ToolFault) as found:
        env.step(ACTIONS[0])
    assert isinstance(found.value.__cause__, SandboxLost)
    with pytest.raises(EngineUnavailable):
        while True:  # a sandbox that waits in the pool may still serve
            Small.reset(env, seed=0)
            env._work.workspace._sandbox.stop()  # type: ignore[union-attr]
            env.close()
