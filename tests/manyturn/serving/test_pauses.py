"""A server that stands still, or fills its memory, for one client: the others have to get their answers meanwhile."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no servers: pip install 'manyturn[hosts]'", allow_module_level=True)

from elsewhere import hosting
from event_loop_pauses import without_pauses
from websockets.asyncio.client import connect

from manyturn.envs.hosting.handle.messages import encode
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.envs.hosting.remote.connection import HostLink, HostLost, HostRefused
from manyturn.serving import middleware
from manyturn.serving.wires import openenv

PIPED = f"{Path(__file__).parents[2] / 'envs' / 'traps.py'}:Piped"
MAZE = "manyturn/Maze-v0"
MOST_MB = 100
WIRES = ("ors", "mcp", "nemo-gym")


def hello(driver: str, env: str, world: dict[str, str], **args: str) -> bytes:
    return encode({"env": env, "args": args, "wrappers": [], "world": world, "driver": driver})


async def refusal(url: str, driver: str, **args: str) -> str:
    """Words of a host to a driver, which it refuses in any case: the world is another."""
    link = HostLink(url, None, hello(driver, "traps.py:Piped", {}, **args), 60.0)
    try:
        with pytest.raises((HostLost, HostRefused)) as refused:
            await link.connect()
    finally:
        await link.close()
    return str(refused.value)


async def opened(pipe: Path) -> int:
    """Descriptor of a pipe that something waits for; it goes on when this is closed."""
    async with asyncio.timeout(60):
        while True:
            with suppress(OSError):
                return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            await asyncio.sleep(0.05)


def test_a_host_answers_others_while_an_environment_waits_for_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def play() -> None:
        async with hosting(env=PIPED, args={"made": str(pipe)}, workers=1) as [url], without_pauses():
            others = set(psutil.Process().children())  # of earlier tests
            for ending in ("hung up", "written"):
                slow = asyncio.create_task(refusal(url, "slow", made=str(pipe)))
                descriptor = await opened(pipe)
                async with asyncio.timeout(40):
                    assert "plays for another driver" in await refusal(url, "other")
                if ending == "written":
                    os.close(descriptor)
                    assert "another version of the environment" in await asyncio.wait_for(slow, 60)
                    return
                slow.cancel()
                async with asyncio.timeout(40):
                    while set(psutil.Process().children()) - others:
                        await asyncio.sleep(0.05)
                os.close(descriptor)

    asyncio.run(play())


def test_a_loop_that_stands_still_is_noticed():
    async def stand_still() -> None:
        async with without_pauses():
            await asyncio.sleep(0.1)
            time.sleep(1.5)

    with pytest.raises(AssertionError, match="stood still for 1"):
        asyncio.run(stand_still())


def say(text: str) -> dict[str, Any]:
    """An action in the words of NeMo Gym."""
    return {"response": {"output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}]}}


class Player:
    """An episode in the language of a server over HTTP, and its list of validation tasks."""

    def __init__(self, client: httpx.AsyncClient, wire: str):
        self.client, self.wire, self.episode = client, wire, ""

    async def begin(self) -> None:
        match self.wire:
            case "openenv":
                begun = await self.client.post("/reset", json={"split": "train"})
                self.episode = begun.json()["metadata"]["episode"]
            case "nemo-gym":
                await self.client.post("/reset", json={"manyturn": {"split": "train"}})
            case "ors":
                self.client.headers["X-Session-ID"] = "one"
                await self.client.post("/create", json={"task_spec": {"split": "train"}})

    async def wait(self) -> str:
        match self.wire:
            case "openenv":
                words: dict[str, Any] = {"episode": self.episode, "action": {"text": "wait"}}
            case "nemo-gym":
                words = say("wait")
            case _:
                words = {"name": "act", "input": {"text": "wait"}}
        return (await self.client.post("/call" if self.wire == "ors" else "/step", json=words)).text

    async def lists(self) -> bool:
        """True once the server has listed the tasks of validation."""
        if self.wire == "nemo-gym":
            other = httpx.AsyncClient(base_url=self.client.base_url, timeout=60)
            return (await other.post("/reset", json={"manyturn": {"split": "validation"}})).status_code == 200
        answer = await self.client.post("/Piped/num_tasks", json={"split": "validation"})
        return answer.json()["num_tasks"] == 40


class Agent:
    """The same through MCP."""

    def __init__(self, client: Any):
        self.client, self.episode = client, ""

    async def begin(self) -> None:
        begun = await self.client.call_tool("begin", {"split": "train"})
        self.episode = begun.structured_content["episode"]

    async def wait(self) -> str:
        return str((await self.client.call_tool("act", {"episode": self.episode, "text": "wait"})).content)

    async def lists(self) -> bool:
        listed = await self.client.call_tool("tasks", {"split": "validation", "count": 3})
        return not listed.is_error


@asynccontextmanager
async def player(wire: str, url: str) -> AsyncIterator[Player | Agent]:
    if wire == "mcp":
        mcp = pytest.importorskip("mcp")
        async with mcp.Client(url) as client:
            yield Agent(client)
    else:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            yield Player(client, wire)


@pytest.mark.parametrize("wire", ["openenv", *(pytest.param(one, marks=pytest.mark.deep) for one in WIRES)])
def test_a_server_answers_others_while_its_lists_wait_for_a_pipe(tools, tmp_path, wire):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def play() -> None:
        served = {"env_args": {"listed": str(pipe)}, "workers": 2, "splits": ("train", "validation")}
        opening = asyncio.create_task(opened(pipe))  # the trial of the environment lists them too
        opening.add_done_callback(lambda opening: os.close(opening.result()))
        async with tools.serving(PIPED, wire, **served) as (url, _), player(wire, url) as one, without_pauses():
            await one.begin()
            listing = asyncio.create_task(one.lists())
            descriptor = await opened(pipe)
            assert "still here, 1" in await one.wait()
            assert not listing.done()
            os.close(descriptor)
            while not listing.done():  # a worker lists them once more
                with suppress(OSError):
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                await asyncio.sleep(0.05)
            assert await listing

    asyncio.run(play())


@pytest.mark.deep
def test_a_driver_that_never_reads_is_read_no_further():
    async def play() -> None:
        world = InlineSeats(MAZE).world()
        deaf: dict[str, Any] = {"max_queue": 1, "close_timeout": 0.1}
        async with hosting() as [url], connect(f"{url.replace('http', 'ws')}/host", **deaf) as socket:
            await socket.send(hello("deaf", MAZE, world))
            await socket.recv()
            sent = 0
            with suppress(TimeoutError):
                while sent < MOST_MB:
                    await asyncio.wait_for(socket.send(encode({"id": "x" * 2**19, "op": "ping"})), 10)
                    sent += 0.5
            socket.transport.abort()
            assert 10 < sent < MOST_MB

    asyncio.run(play())


def test_unfinished_messages_of_all_clients_have_one_budget_and_small_ones_get_through(tools, monkeypatch):
    monkeypatch.setattr(middleware, "MOST_WAITING", 2**20)
    piece = "x" * 2**17

    async def parts(held: asyncio.Event):
        yield piece
        await held.wait()

    async def play() -> None:
        held = asyncio.Event()
        async with tools.serving(tools.faulty, "openenv") as (url, _), httpx.AsyncClient(timeout=60) as client:
            bodies = [asyncio.create_task(client.post(f"{url}/reset", content=_bytes(held, piece))) for _ in range(3)]
            sockets = [await connect(f"{url.replace('http', 'ws')}/ws") for _ in range(12)]
            unfinished = [asyncio.create_task(one.send(parts(held))) for one in sockets]
            await asyncio.wait(
                [asyncio.create_task(one.wait_closed()) for one in sockets], timeout=60, return_when="FIRST_COMPLETED"
            )
            talk = await tools.talk(url)
            assert (await talk.begin(1)).startswith("hello")
            talk.drop()
            open_ = sum(one.state.name == "OPEN" for one in sockets)
            assert 0 < open_ < 12
            held.set()
            await asyncio.wait(unfinished + bodies, timeout=30)
            for one in sockets:
                one.transport.abort()

    asyncio.run(play())


async def _bytes(held: asyncio.Event, piece: str):
    yield piece.encode()
    await held.wait()


def test_a_session_that_never_begins_is_dropped_early_and_one_that_has_begun_is_not(tools, monkeypatch):
    monkeypatch.setattr(openenv, "_BEGIN_SECONDS", 0.3)

    async def play() -> None:
        async with tools.serving(tools.faulty, "openenv", idle=600.0) as (url, _):
            idle, busy = await tools.talk(url), await tools.talk(url)
            await busy.begin(1)
            with pytest.raises(EOFError):
                await idle.hear()
            assert (await busy.act("on"))[0]
            busy.drop()

    asyncio.run(play())


@pytest.mark.parametrize("wire", ["mcp", "openenv", "nemo-gym", "ors"])
def test_a_server_plays_the_splits_that_it_was_started_for(tools, wire):
    async def play() -> None:
        async with tools.serving(tools.faulty, wire, splits=("train",)) as (_, episodes):
            for words in ({"split": "test"}, {"task": "test/1"}, {"task": "test/1", "split": "test"}):
                with pytest.raises(Exception, match=r"plays train only|no task 'test/1'"):
                    await episodes.begin(**words)
            with pytest.raises(Exception, match="plays train only"):
                await episodes.tasks("test", 0, 1)
            assert (await episodes.begin(task="train/1")).task == "train/1"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--split", "test"), "add --held-out"),
        (("--split", "train", "--split", "validation"), "--split validation is held out"),
        (("--held-out",), "--held-out has no effect"),
    ],
)
def test_held_out_tasks_are_served_by_a_word_of_their_own(command, tools, words, said):
    ended = command("serve", tools.faulty, "--as", "openenv", "--workers", "0", *words)
    assert ended.code == 2 and said in ended.err and ended.err.count("\n") == 1
