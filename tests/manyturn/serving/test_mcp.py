"""Environments that an MCP client plays: other turns, rewards that a model reads, errors that count as results."""

import asyncio
import os
import signal
import subprocess
import time
from importlib.util import find_spec
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("mcp", "uvicorn", "wsproto")):
    pytest.skip("no server: pip install 'manyturn[serve]'", allow_module_level=True)

from mcp import Client, MCPError
from served import ALL_SPLITS

pytestmark = pytest.mark.versions

DESK, SHOP, HOUSEHOLD = (f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household"))


async def begin(client, **words):
    """The structured part of a beginning, and its judgement."""
    result = await client.call_tool("begin", words)
    assert not result.is_error, result.content
    return result.structured_content, result.meta


async def act(client, episode, text, **words):
    result = await client.call_tool("act", {"episode": episode, "text": text, **words})
    return result.structured_content, result.meta, result


async def same_episode(client, turns, seed):
    """Play the actions of a transcript, and compare every turn with it."""
    now, judged = await begin(client, seed=seed)
    assert now["text"] == turns[0].text and now["turn"] == 0 and not now["ended"]
    assert judged["manyturn/env_identity"]["files"] and "env_identity" not in now
    for number, turn in enumerate(turns[1:], 1):
        now, judged, result = await act(client, now["episode"], turn.action, turn=number - 1)
        assert now["text"] == turn.text == result.content[0].text
        assert judged["manyturn/reward"] == turn.reward and judged["manyturn/reward_parts"] == turn.parts
        assert (now["turn"], now["ended"], now["truncated"]) == (number, turn.ended, turn.truncated)
    assert judged["manyturn/success"] is True and "ended" in result.content[1].text


@pytest.mark.parametrize(
    "env", [DESK, pytest.param(SHOP, marks=pytest.mark.slow), pytest.param(HOUSEHOLD, marks=pytest.mark.slow)]
)
def test_a_client_plays_the_episodes_of_the_environment_until_its_server_is_killed(tools, env):
    expected = {seed: tools.transcript(env, seed, garbage=seed) for seed in (0, 1, 2)}

    async def play(url, server):
        async with Client(url) as client:
            assert "Call begin" in client.instructions and len(client.instructions) > 300
            assert [tool.name for tool in (await client.list_tools()).tools] == ["begin", "act", "leave", "tasks"]
            await asyncio.gather(*(same_episode(client, turns, seed) for seed, turns in expected.items()))
            listed = (await client.call_tool("tasks", {"split": "test", "count": 3})).structured_content
            assert len(listed["tasks"]) == 3 and listed["total"] > 3
            named, _ = await begin(client, task=listed["tasks"][1], seed=7)
            assert (named["task"], named["split"], named["seed"]) == (listed["tasks"][1], "test", 7)
        async with Client(url, mode="legacy") as old:
            await same_episode(old, expected[1], 1)
        with pytest.raises(Exception):  # noqa: B017  whichever it is, it is no result
            async with Client(url) as client:
                now, _ = await begin(client)
                server.kill()
                server.wait()
                await act(client, now["episode"], "look")
        assert server.returncode == -signal.SIGKILL

    with tools.process(env, "mcp", "--workers", "1", *ALL_SPLITS) as (url, server):
        asyncio.run(play(url, server))


@pytest.mark.slow
def test_a_client_that_plays_alone_does_not_wait_for_acknowledgements(tools):
    async def quickest(url):
        async with Client(url) as client:
            seconds = []
            for _ in range(30):
                began = time.perf_counter()
                assert not (await client.call_tool("tasks", {"count": 1})).is_error
                seconds.append(time.perf_counter() - began)
        return min(seconds[10:])  # a new connection's are sent at once

    with tools.process(tools.faulty, "mcp", "--workers", "1") as (url, _):
        # The header would wait for no one, the rest of an answer 40 ms for the client's delayed acknowledgement of it.
        assert asyncio.run(quickest(url)) < 0.03


def test_a_signal_ends_the_server_and_its_workers(tools):
    async def play(url):
        async with Client(url) as client:
            await begin(client)

    with tools.process(tools.faulty, "mcp", "--workers", "1") as (url, server):
        asyncio.run(play(url))
        children = subprocess.run(["pgrep", "-P", str(server.pid)], capture_output=True, text=True, check=True)
        server.send_signal(signal.SIGTERM)
        assert server.wait(15) == 143 and server.stderr.read() == ""
        for child in map(int, children.stdout.split()):
            with pytest.raises(ProcessLookupError):
                os.kill(child, 0)


def test_a_model_reads_no_judgement(tools):
    async def play():
        async with tools.serving(tools.faulty, "mcp") as (url, _), Client(url) as client:
            result = await client.call_tool("begin", {"seed": 3})
            assert [one.text for one in result.content[:2]] == [
                "Say anything; 'win' wins.",
                result.structured_content["text"],
            ]
            assert result.structured_content["episode"] in result.content[2].text
            now, judged, result = await act(client, result.structured_content["episode"], "hello")
            assert len(result.content) == 1
            assert not now.keys() & {"reward", "reward_parts", "admissible", "anchor", "success", "answer"}
            assert judged["manyturn/admissible"] == ["win", "say 1"] and judged["manyturn/progress"] == 0.125
            assert "manyturn/answer" not in judged and len(judged["manyturn/anchor"]) == 32

    asyncio.run(play())


def test_a_truncated_episode_has_not_failed_and_takes_no_more_turns(tools):
    async def play():
        async with tools.serving(tools.faulty, "mcp", env_args={"max_turns": 1}) as (url, held), Client(url) as client:
            now, _ = await begin(client)
            now, _, result = await act(client, now["episode"], "hello")
            assert (now["ended"], now["truncated"]) == (True, True) and "no turns are left" in result.content[1].text
            assert held.open == 0
            refused, _, result = await act(client, now["episode"], "more")
            assert result.is_error and refused["error"]["kind"] == "ended"

    asyncio.run(play())


def test_a_reward_that_is_not_known_is_not_nothing(tools):
    async def play():
        async with tools.serving(tools.unscorable, "mcp") as (url, _), Client(url) as client:
            now, _ = await begin(client)
            _, judged, _ = await act(client, now["episode"], "1")
            assert judged["manyturn/scored"] is False and "manyturn/reward" not in judged
            assert judged["manyturn/reward_parts"] == {"digit": None}

    asyncio.run(play())


@pytest.mark.deep
@pytest.mark.parametrize(("action", "kind"), [("raise", "env_error"), ("die", "infra_error"), ("sleep", "infra_error")])
def test_an_error_of_the_environment_is_no_result_and_tells_no_secrets(tools, capfd, action, kind):
    async def play():
        async with tools.serving(tools.faulty, "mcp", workers=1, timeout=2) as (url, held), Client(url) as client:
            now, _ = await begin(client, task="train/7", seed=5)
            for _ in range(2):  # the second time it is still lost
                with pytest.raises(MCPError) as caught:
                    await act(client, now["episode"], action)
                assert caught.value.data["kind"] == kind and "train/7" in caught.value.message
                assert "purpose" not in str(caught.value.data)
            assert held.open == 0
            again, _ = await begin(client, task="train/7", seed=5)
            assert again["text"] == now["text"] and again["episode"] != now["episode"]

    asyncio.run(play())
    assert f"manyturn: {kind} in turn 1 of train/7, seed 5: " in capfd.readouterr().err


def test_two_clients_of_one_episode_do_not_play_for_each_other(tools, tmp_path):
    async def play():
        async with (
            tools.serving(tools.faulty, "mcp", workers=1) as (url, _),
            Client(url) as one,
            Client(url) as other,
        ):
            now, _ = await begin(one)
            first, _, _ = await act(one, now["episode"], "mine", turn=0)
            lost, _, result = await act(other, now["episode"], "yours", turn=0)
            assert result.is_error and lost["error"]["kind"] == "stale"
            again, _, _ = await act(one, now["episode"], "mine", turn=0)  # its answer was lost on the way
            assert again == first and first["turn"] == 1
            slow = asyncio.create_task(act(one, now["episode"], f"wait {tmp_path}/gate", turn=1))
            await tools.file(tmp_path / "gate.begun")
            busy, _, _ = await act(other, now["episode"], "yours")
            (tmp_path / "gate").touch()
            assert busy["error"]["kind"] == "busy" and (await slow)[0]["turn"] == 2

    asyncio.run(play())


def test_a_client_that_hangs_up_leaves_a_whole_turn(tools, tmp_path):
    async def play():
        async with tools.serving(tools.faulty, "mcp", workers=1) as (url, held):
            async with Client(url) as client:
                now, _ = await begin(client)
                turn = asyncio.create_task(act(client, now["episode"], f"wait {tmp_path}/gate", turn=0))
                await tools.file(tmp_path / "gate.begun")
                turn.cancel()
                await asyncio.wait((turn,))
            (tmp_path / "gate").touch()
            async with Client(url) as client:
                after: dict[str, Any] = {"error": {"kind": "busy"}}
                while after.get("error", {}).get("kind") == "busy":
                    after, _, _ = await act(client, now["episode"], f"wait {tmp_path}/gate", turn=0)
                assert after["turn"] == 1 and after["text"].startswith("wait ")
            assert held.open == 1

    asyncio.run(play())


def test_episodes_side_by_side_are_those_that_are_played_alone(tools):
    async def one(client, seed):
        now, _ = await begin(client, seed=seed)
        texts = [now["text"]]
        for turn in range(3):
            now, judged, _ = await act(client, now["episode"], f"word {seed}", turn=turn)
            texts += [now["text"], judged["manyturn/reward"]]
        return texts

    async def play():
        async with tools.serving(tools.faulty, "mcp", limit=32) as (url, _), Client(url) as client:
            together = await asyncio.gather(*(one(client, seed) for seed in range(10)))
            alone = [await one(client, seed) for seed in range(10)]
            assert together == alone and len({texts[0] for texts in alone}) == 10

    asyncio.run(play())


def test_no_more_episodes_than_there_may_be(tools):
    async def play():
        async with tools.serving(tools.faulty, "mcp", limit=3) as (url, held), Client(url) as client:
            begun = await asyncio.gather(*(begin(client) for _ in range(9)), return_exceptions=True)
            full = [error for error in begun if isinstance(error, MCPError)]
            assert len(full) == 6 and {error.data["kind"] for error in full} == {"full"} and held.open == 3
            here = next(one[0] for one in begun if not isinstance(one, MCPError))
            assert not (await client.call_tool("leave", {"episode": here["episode"]})).is_error and held.open == 2
            await begin(client)
            assert held.open == 3

    asyncio.run(play())


def test_idle_episodes_close(tools):
    async def play():
        async with tools.serving(tools.faulty, "mcp", idle=0.5) as (url, held), Client(url) as client:
            now, _ = await begin(client)
            while held.open:  # or the test's time is over
                await asyncio.sleep(0.1)
            gone, _, _ = await act(client, now["episode"], "hello")
            assert gone["error"]["kind"] == "no_episode"

    asyncio.run(play())


@pytest.mark.deep
@pytest.mark.parametrize(
    ("tool", "words", "said"),
    [
        ("begin", {"task": "train/none"}, "no task 'train/none'"),
        ("begin", {"task": "train/1", "split": "test"}, "in split test"),
        ("begin", {"split": "exam"}, "no split 'exam'"),
        ("begin", {"seed": -1}, "seed"),
        ("begin", {"seed": 1.5}, "seed"),
        ("begin", {"seed": 2**70}, "seed"),
        ("begin", {"sed": 1}, "sed"),
        ("act", {"episode": "0123456789abcdef", "text": "x"}, "no such episode"),
        ("act", {"episode": "EPISODE"}, "text"),
        ("act", {"episode": "EPISODE", "text": 3}, "text"),
        ("act", {"episode": "EPISODE", "text": "x" * 1_000_001}, "1,000,000 characters"),
        ("act", {"episode": "EPISODE", "text": "x", "turn": "0"}, "turn"),
        ("tasks", {"count": 10**6}, "count"),
        ("tasks", {"first": -5}, "first"),
        ("close", {}, "no tool"),
    ],
)
def test_mistakes_are_named_and_play_nothing(tools, tool, words, said):
    async def play():
        async with tools.serving(tools.faulty, "mcp") as (url, held), Client(url) as client:
            now, _ = await begin(client, seed=1)
            given = {key: now["episode"] if value == "EPISODE" else value for key, value in words.items()}
            result = await client.call_tool(tool, given)
            assert result.is_error and said in result.content[0].text and held.open == 1
            assert (await act(client, now["episode"], "hello"))[0]["turn"] == 1

    asyncio.run(play())


@pytest.mark.slow
def test_a_thousand_dropped_clients_leave_nothing(tools):
    async def drop(url, kinds):
        async with Client(url) as client:
            try:
                await begin(client)
                kinds.append("begun")
            except MCPError as error:
                kinds.append(error.data["kind"])

    async def play():
        async with tools.serving(tools.faulty, "mcp", idle=2, limit=64) as (url, held):
            kinds = []
            for _ in range(50):
                await asyncio.gather(*(drop(url, kinds) for _ in range(20)))
            assert len(kinds) == 1000 and set(kinds) <= {"begun", "full"} and kinds.count("begun") >= 64
            while held.open:
                await asyncio.sleep(0.1)
            async with Client(url) as client:
                await same_after(client)

    async def same_after(client):
        now, _ = await begin(client, seed=1)
        assert (await act(client, now["episode"], "win"))[0]["ended"]

    asyncio.run(play())
