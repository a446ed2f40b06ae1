"""OpenEnv's real client and validator: other turns than ours, failures that count as rewards, unusable servers."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from needs_host import host
from served import FAULTY, process, serving, transcript

TOKEN = "0123456789abcdef-a-token"


@pytest.fixture(autouse=True)
def _openenv() -> None:
    host("openenv")


def client(url: str, **words):
    from openenv.core.generic_client import GenericEnvClient

    return GenericEnvClient(base_url=url, **words)


async def same_episode(url, turns, seed):
    async with client(url) as env:
        result = await env.reset(seed=seed)
        assert (result.observation["text"], result.reward, result.done) == (turns[0].text, None, False)
        for turn in turns[1:]:
            result = await env.step({"text": turn.action})
            assert (result.observation["text"], result.reward, result.done) == (turn.text, turn.reward, turn.ended)
            facts = result.metadata
            assert (facts["reward_parts"], facts["truncated"]) == (turn.parts, turn.truncated)
        state = await env.state()
        assert state["step_count"] == len(turns) - 1 and facts["success"] is True


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_its_client_plays_our_episodes(env):
    expected = {seed: transcript(env, seed, garbage=seed) for seed in range(4)}

    async def play(url, server):
        await asyncio.gather(*(same_episode(url, turns, seed) for seed, turns in expected.items()))
        async with client(url) as one:
            await one.reset(seed=0)
            server.kill()
            server.wait()
            with pytest.raises(Exception, match=r"."):  # whichever it is, it is no result
                await one.step({"text": "look"})

    with process(env, "openenv", "--workers", "1") as (url, server):
        with client(url).sync() as env_in_step:
            assert env_in_step.reset(seed=1).observation["text"] == expected[1][0].text
        asyncio.run(play(url, server))


def test_its_validator_is_content():
    tool = Path(sys.executable).with_name("openenv")
    with process(FAULTY, "openenv", "--workers", "0") as (url, _):
        report = subprocess.run([tool, "validate", "--url", url], capture_output=True, text=True, check=False)
    assert report.returncode == 0 and "FAIL" not in report.stdout, report.stdout + report.stderr


def test_failures_raise_in_its_client():
    async def play():
        async with serving(FAULTY, "openenv", limit=1) as (url, _), client(url) as one, client(url) as other:
            with pytest.raises(RuntimeError, match=r"no_episode.*SESSION_ERROR"):
                await one.step({"text": "hello"})
            await one.reset(seed=1)
            with pytest.raises(RuntimeError, match=r"full: 1 episodes are open.*CAPACITY_REACHED"):
                await other.reset(seed=1)
            for _ in range(2):
                with pytest.raises(RuntimeError, match=r"env_error.*EXECUTION_ERROR"):
                    await one.step({"text": "raise"})
            with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
                await one.reset(split="exam")
            assert not (await one.reset(seed=1)).done and (await one.step({"text": "win"})).done

    asyncio.run(play())


def test_its_client_brings_a_token():
    async def play():
        async with serving(FAULTY, "openenv", token=TOKEN) as (url, _):
            with pytest.raises(ConnectionError):
                await client(url).connect()
            headers = {"Authorization": f"Bearer {TOKEN}"}
            for env in (client(url, headers=headers), client(url.replace("//", f"//user:{TOKEN}@"))):
                async with env:
                    assert not (await env.reset(seed=1)).done

    asyncio.run(play())


def test_the_client_on_the_page_plays(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "serving-openenv.md").read_text(encoding="utf-8")
    [code] = re.findall(r"<!-- run by \S+ -->\n```python\n(from openenv.*?)```", page, re.S)
    with process("manyturn/Desk-v0", "openenv", "--workers", "0") as (url, _):
        (tmp_path / "client.py").write_text(code.replace("http://127.0.0.1:8124", url), encoding="utf-8")
        played = subprocess.run([sys.executable, tmp_path / "client.py"], capture_output=True, text=True, check=False)
        assert played.returncode == 0 and played.stdout.splitlines()[-1].endswith(" 0.0 False"), played.stderr
