"""The client of the package openreward against our server: other turns than ours, failures that count as rewards."""

import asyncio
import contextlib
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from needs_host import host  # pyright: ignore[reportMissingImports]
from served import FAULTY, process, serving, transcript  # pyright: ignore[reportMissingImports]

import manyturn as mt
from manyturn.envs.openenv.faults import ServerRaised

TOKEN = "0123456789abcdef-a-token"


@pytest.fixture(autouse=True)
def _openreward(monkeypatch: pytest.MonkeyPatch) -> None:
    host("openreward")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@asynccontextmanager
async def client(url: str) -> AsyncIterator[Any]:
    from openreward import AsyncOpenReward  # pyright: ignore[reportMissingImports]

    connected = AsyncOpenReward(api_key="none", base_url="http://127.0.0.1:1")
    try:
        yield connected.environments.get("served", base_url=url)
    finally:
        await connected.environments.aclose()


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_its_client_plays_our_episodes(env):
    async def play(url):
        async with client(url) as world:
            assert await world.list_splits() == ["train"] and await world.num_tasks("train") > 1
            [task] = await world.get_task_range("train", 0, 1)
            assert (await world.get_task("train", 0)).task_spec == task.task_spec
            task.task_spec["seed"] = 3
            turns = transcript(env, 3, garbage=1, task=task.task_spec["task"])
            async with world.session(task=task) as session:
                assert (await session.get_prompt())[-1].text == turns[0].text
                offered = {tool.name for tool in await session.list_tools()}
                for provider in ("openai", "anthropic", "google"):
                    assert len(await session.list_tools(format=provider)) == len(offered)
                for turn in turns[1:]:
                    name, given = "act", {"text": turn.action}
                    if turn.action.startswith("{"):
                        name, given = (call := json.loads(turn.action))["name"], call["arguments"]
                    output = await session.call_tool(name, given)
                    assert [block.text for block in output.blocks] == [turn.text] and name in offered
                    assert (output.reward, output.finished) == (turn.reward, turn.ended)
                    assert output.metadata["reward_parts"] == turn.parts
                assert output.metadata["success"] is True

    with process(env, "ors", "--workers", "1") as (url, _):
        asyncio.run(play(url))


def test_failures_raise_in_its_client():
    from openreward.api.errors import SessionTerminatedError, ToolCallError, ToolFailed

    async def play():
        async with serving(FAULTY, "ors", token=TOKEN) as (url, held):
            async with client(url) as world:
                with pytest.raises(Exception, match=r"401|Auth"):
                    await world.num_tasks("train")
            async with client(url.replace("//", f"//user:{TOKEN}@")) as world:
                async with world.session(split="train", index=0) as session:
                    with pytest.raises(ToolCallError):
                        await session.call_tool("look", {})
                    assert (await session.call_tool("act", {"text": "win"})).finished
                    with pytest.raises(ToolCallError) as over:
                        await session.call_tool("act", {"text": "win"})
                    assert over.value.reason == "episode_finished"
                async with world.session(split="train", index=0) as session:
                    with pytest.raises(ToolFailed, match="env_error"):
                        await session.call_tool("act", {"text": "raise"})
                    with pytest.raises(SessionTerminatedError):
                        await session.call_tool("act", {"text": "win"})
            assert held.open == 0

    asyncio.run(play())


def test_the_page_is_right():
    page = (Path(__file__).parents[3] / "docs" / "serving-ors.md").read_text(encoding="utf-8")
    [code] = re.findall(r"<!-- run by \S+ -->\n```python\n(from openreward.*?)```", page, re.S)
    with process("manyturn/Desk-v0", "ors", "--workers", "0") as (url, _):
        shown = subprocess.run(
            [sys.executable, "-c", code.replace("http://127.0.0.1:8126", url)],
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        ).stdout
    assert "'find_user_by_email'" in shown and "'act'" in shown and shown.splitlines()[-1].endswith(" 0.0 False")


@pytest.fixture
def worlds() -> Iterator[str]:
    """The package's own server with environments of its own classes."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    script = Path(__file__).with_name("openreward_worlds.py")
    running = subprocess.Popen(
        [sys.executable, script, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        stop = time.monotonic() + 100
        while time.monotonic() < stop:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        yield f"ors:127.0.0.1:{port}"
    finally:
        running.kill()
        running.wait()


def guess(number: int) -> str:
    return json.dumps({"name": "guess", "arguments": {"number": number}})


def test_we_play_its_own_server(command, worlds):
    env = mt.make(worlds)
    tasks = env.unwrapped.tasks("train")
    assert env.unwrapped.splits == ("train", "hard") and len(tasks) == 70 and tasks[65].params["number"] == 5
    assert '"name": "guess"' in env.unwrapped.instructions
    text, _ = env.reset(seed=1, options={"task": "train/65"})
    assert text == "Guess from 0 to 10."
    text, reward, terminated, *_ = env.step(f"[{guess(1)}, {guess(2)}]")
    assert (text.count("No."), reward, terminated) == (2, -0.25, False) and len(text) == 2 * 9004 + 1
    text, reward, _, _, info = env.step('{"name": "guess", "arguments": {"number": "many"}}')
    assert text.startswith("Error: ") and reward == 0 and info["understood"] is False
    with pytest.raises(ServerRaised, match="broken on purpose"):
        env.step(guess(99))
    env.reset(seed=1, options={"task": "train/3"})
    assert env.step(guess(3))[1:3] == (1.0, True)
    speaking = mt.make(worlds, variant="speaking")
    speaking.reset(seed=1)
    assert speaking.step("I do not know.")[:3] == ("Over.", len("I do not know.") / 8, True)
    words = ("--env.args.variant", "speaking", "--split", "train", "--limit", 4)
    assert command("check", worlds).code == 0
    ended = command("evaluate", "random", "--env", worlds, *words)
    assert ended.code == 0, ended.err
