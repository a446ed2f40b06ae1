"""A server that is killed, dropped clients, and two on one session, on the wires that answer requests of HTTP."""

import asyncio
import contextlib
import json
from importlib.util import find_spec
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto")):
    pytest.skip("no server: pip install 'manyturn[serve]'", allow_module_level=True)

import httpx

pytestmark = pytest.mark.versions


class Nemo:
    """A session of NeMo Gym's agent: a cookie."""

    def __init__(self, url: str):
        self.client = httpx.AsyncClient(base_url=url, timeout=60)

    async def reset(self, seed: int) -> httpx.Response:
        return await self.client.post("/reset", json={"manyturn": {"seed": seed}})

    async def step(self, text: str) -> httpx.Response:
        message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
        return await self.client.post("/step", json={"response": {"output": [message]}})

    def join(self, other: "Nemo") -> None:
        """Take the other's session for one's own."""
        self.client.cookies.update(other.client.cookies)


class OpenEnv:
    """An episode of OpenEnv over HTTP: an id in each request."""

    def __init__(self, url: str):
        self.client, self.episode = httpx.AsyncClient(base_url=url, timeout=60), ""

    async def reset(self, seed: int) -> httpx.Response:
        answer = await self.client.post("/reset", json={"seed": seed})
        self.episode = answer.json().get("metadata", {}).get("episode", "")
        return answer

    async def step(self, text: str) -> httpx.Response:
        return await self.client.post("/step", json={"action": {"text": text}, "episode": self.episode})

    def join(self, other: "OpenEnv") -> None:
        """Take the other's episode for one's own."""
        self.episode = other.episode


WIRES = {"nemo-gym": Nemo, "openenv": OpenEnv}


def turn(answer: httpx.Response) -> int:
    """How many turns an episode has had."""
    told = answer.json()
    return (told.get("info") or told.get("metadata"))["turn"]


@pytest.mark.parametrize("wire", WIRES)
def test_two_clients_of_one_session_do_not_play_at_once(tools, wire, tmp_path):
    async def play():
        async with tools.serving(tools.faulty, wire, workers=1) as (url, held):
            one, other, third = (WIRES[wire](url) for _ in range(3))
            await one.reset(1)
            other.join(one)
            await third.reset(2)
            slow = asyncio.create_task(one.step(f"wait {tmp_path}/gate"))
            await tools.file(tmp_path / "gate.begun")
            refused = await other.step("mine")
            apart = asyncio.create_task(third.step("hello"))
            (tmp_path / "gate").touch()
            assert refused.status_code == 409 and refused.json()["kind"] == "busy" and "reward" not in refused.json()
            assert turn(await apart) == 1, "another episode does not wait, and gets its own answer"
            played = await slow
            assert turn(played) == 1 and json.dumps(played.json()).count("mine") == 0
            after = await other.step("mine")
            assert turn(after) == 2 and held.open == 2

    asyncio.run(play())


@pytest.mark.deep
@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_is_killed_in_an_episode_gives_no_reward(tools, wire, tmp_path):
    async def play():
        with tools.process(tools.faulty, wire) as (url, running):
            one = WIRES[wire](url)
            assert (await one.reset(1)).status_code == 200 and (await one.step("hello")).status_code == 200
            slow = asyncio.create_task(one.step(f"wait {tmp_path}/gate"))
            await tools.file(tmp_path / "gate.begun")
            running.kill()
            with pytest.raises(httpx.TransportError):
                await slow
        with tools.process(tools.faulty, wire, "--port", url.rpartition(":")[2]) as (again, _):
            assert again == url
            lost = await one.step("hello")
            assert lost.status_code == 404 and lost.json()["kind"] == "no_episode" and "reward" not in lost.json()

    asyncio.run(play())


@pytest.mark.slow
def test_a_thousand_dropped_sessions_of_nemo_gym_leave_nothing(tools):
    async def drop(url: str, number: int) -> Any:
        one = Nemo(url)
        answer = await one.reset(number)
        if answer.status_code == 200 and number % 2:
            with contextlib.suppress(httpx.TransportError, TimeoutError):
                async with asyncio.timeout(0.05):
                    await one.step("sleep 0.1")
        await one.client.aclose()
        return answer.json().get("kind", "begun")

    async def play():
        async with tools.serving(tools.faulty, "nemo-gym", limit=64, idle=2, workers=1) as (url, held):
            said = []
            for first in range(0, 1000, 20):
                said += await asyncio.gather(*(drop(url, first + n) for n in range(20)))
            assert len(said) == 1000 and set(said) <= {"begun", "full"} and said.count("begun") >= 64
            while held.open:  # or the test's time is over
                await asyncio.sleep(0.1)
            one = Nemo(url)
            await one.reset(1)
            assert (await one.step("win")).json()["terminated"]

    asyncio.run(play())
