"""Environments on OpenEnv's wire, message by message; tests/manyturn/integrations has the tests with its own client."""

import asyncio
from importlib.util import find_spec

import httpx
import pytest

pytestmark = pytest.mark.versions

if any(find_spec(name) is None for name in ("uvicorn", "wsproto")):
    pytest.skip("no server: pip install 'manyturn[serve]'", allow_module_level=True)

TOKEN = "0123456789abcdef-a-token"


def reset(**words):
    return {"type": "reset", "data": words}


def step(text, **words):
    return {"type": "step", "data": {"text": text, **words}}


async def closed(held):
    """Wait until no episode is open, or the test's time is over."""
    while held.open:
        await asyncio.sleep(0.05)


def test_a_session_plays_the_episode_of_the_environment(tools):
    turns = tools.transcript("manyturn/Desk-v0", 3, garbage=1)

    async def play():
        async with tools.serving("manyturn/Desk-v0", "openenv") as (url, held):
            talk = await tools.talk(url)
            answer = await talk.say(reset(seed=3, episode_id="mine"))
            assert answer["type"] == "observation" and answer["data"]["reward"] is None
            assert answer["data"]["metadata"]["env_identity"] == held.seats.identity.plain()
            for turn in turns[1:]:
                data = (await talk.say(step(turn.action, metadata={})))["data"]
                facts = data["observation"]["metadata"]
                assert (data["observation"]["text"], data["reward"], data["done"]) == (
                    turn.text,
                    turn.reward,
                    turn.ended,
                )
                assert (facts["reward_parts"], facts["truncated"]) == (turn.parts, turn.truncated)
                assert facts == data["metadata"] and "answer" not in facts
            state = (await talk.say({"type": "state"}))["data"]
            assert state["episode_id"] == "mine" and state["step_count"] == len(turns) - 1 and state["ended"]
            await talk.say(reset())
            assert held.open == 1
            with pytest.raises(EOFError):
                await talk.say({"type": "close"})
            await closed(held)

    asyncio.run(play())


def test_an_index_in_a_split_begins_its_task(tools):
    async def play():
        async with tools.serving(tools.faulty, "openenv") as (url, _):
            talk = await tools.talk(url)
            data = (await talk.say(reset(split="test", index=70, seed=1)))["data"]
            assert data["metadata"]["task"] == "test/70"
            for words in ({"index": 70}, {"index": 100, "split": "test"}, {"index": 1, "split": "test", "task": "a"}):
                assert (await talk.say(reset(**words)))["data"]["code"] == "VALIDATION_ERROR"

    asyncio.run(play())


@pytest.mark.deep
def test_failures_have_codes_and_no_rewards(tools, capfd):
    async def play():
        settings = {"workers": 1, "timeout": 2, "limit": 1, "env_args": {"max_turns": 4}}
        async with tools.serving(tools.faulty, "openenv", **settings) as (url, held):
            talk = await tools.talk(url)

            async def refused(message, code, kind=None):
                answer = await talk.say(message)
                assert answer["type"] == "error" and answer["data"]["code"] == code, answer
                assert answer["data"].get("kind") == kind and "reward" not in answer["data"]
                return answer["data"]["message"]

            await refused(step("hello"), "SESSION_ERROR", "no_episode")
            for action, kind in (("raise", "env_error"), ("die", "infra_error"), ("sleep", "infra_error")):
                await talk.say(reset(seed=1))
                assert "purpose" not in await refused(step(action), "EXECUTION_ERROR", kind)
                await refused(step("hello"), "EXECUTION_ERROR", kind)
            await talk.say(reset(seed=1))
            await talk.say(step("hello", turn=0))
            await refused(step("other", turn=0), "SESSION_ERROR", "stale")
            full = await (await tools.talk(url)).say(reset())
            assert full["data"]["code"] == "CAPACITY_REACHED" and held.open == 1
            for word in ("a", "b", "c"):
                data = (await talk.say(step(word)))["data"]
            assert data["done"] and data["metadata"]["truncated"] and data["metadata"]["success"] is False
            await refused(step("more"), "SESSION_ERROR", "ended")

    asyncio.run(play())
    assert "env_error in turn 1" in capfd.readouterr().err


def test_a_reward_that_is_not_known_is_not_taken_for_nothing(tools):
    async def play():
        async with tools.serving(tools.unscorable, "openenv") as (url, held):
            talk = await tools.talk(url)
            await talk.say(reset(seed=1))
            data = (await talk.say(step("1")))["data"]
            assert (data["code"], data["kind"]) == ("EXECUTION_ERROR", "unscored") and held.open == 0
            assert (await talk.say(step("1")))["data"]["kind"] == "no_episode"

    asyncio.run(play())


def test_a_reply_that_a_client_took_for_a_number_is_text(tools):
    async def play():
        async with tools.serving(tools.faulty, "openenv") as (url, _):
            talk = await tools.talk(url)
            await talk.say(reset(seed=1))
            assert (await talk.say(step(5)))["data"]["observation"]["text"].startswith("5 ")
            for other in (True, 1.5, ["5"], {"a": 1}):
                assert (await talk.say(step(other)))["data"]["code"] == "VALIDATION_ERROR"

    asyncio.run(play())


@pytest.mark.deep
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("", "INVALID_JSON"),
        ("nonsense", "INVALID_JSON"),
        ("[" * 100_000, "INVALID_JSON"),
        (b"\x00\xff", "INVALID_JSON"),
        ("[]", "VALIDATION_ERROR"),
        ("null", "VALIDATION_ERROR"),
        ({"type": "reset", "data": {}, "more": 1}, "VALIDATION_ERROR"),
        ({"type": "reset", "data": []}, "VALIDATION_ERROR"),
        ({"type": ["reset"]}, "UNKNOWN_TYPE"),
        ({"data": {}}, "UNKNOWN_TYPE"),
        ({"type": "mcp", "data": {}}, "UNKNOWN_TYPE"),
        (reset(seed="1"), "VALIDATION_ERROR"),
        (reset(seed=-1), "VALIDATION_ERROR"),
        (reset(task="train/none"), "VALIDATION_ERROR"),
        (reset(split="exam"), "VALIDATION_ERROR"),
        (reset(sed=1), "VALIDATION_ERROR"),
        (step(None), "VALIDATION_ERROR"),
        (step("x", reward=1), "VALIDATION_ERROR"),
        (step("x" * 1_000_001), "VALIDATION_ERROR"),
        (step("\ud800"), "VALIDATION_ERROR"),
    ],
)
def test_garbage_plays_nothing(tools, message, code):
    async def play():
        async with tools.serving(tools.faulty, "openenv") as (url, held):
            talk = await tools.talk(url)
            before = await talk.say(reset(seed=5))
            assert (await talk.say(message))["data"]["code"] == code
            if code != "VALIDATION_ERROR" or "reset" not in str(message):
                now = (await talk.say({"type": "state"}))["data"]
                assert now["step_count"] == 0 and now["seed"] == 5 and held.open == 1
            assert await talk.say(reset(seed=5)) != before  # another episode, by its id

    asyncio.run(play())


def test_dropped_connections_leave_no_episode(tools):
    async def play():
        async with tools.serving(tools.faulty, "openenv", workers=1) as (url, held):
            talks = [await tools.talk(url) for _ in range(20)]
            await asyncio.gather(*(talk.say(reset()) for talk in talks))
            busy = [asyncio.create_task(talk.say(step("sleep 0.5"))) for talk in talks[:2]]
            await asyncio.sleep(0.1)
            assert held.open == 20
            for talk in talks:
                talk.drop()
            await closed(held)
            await asyncio.gather(*busy, return_exceptions=True)
            assert (await (await tools.talk(url)).say(reset(seed=1)))["type"] == "observation"

    asyncio.run(play())


@pytest.mark.slow
def test_a_thousand_dropped_sessions_leave_nothing(tools):
    async def drop(url, number):
        talk = await tools.talk(url)
        answer = await talk.say(reset(seed=number))
        talk.drop()
        return answer["data"].get("code", "begun")

    async def play():
        async with tools.serving(tools.faulty, "openenv", limit=64) as (url, held):
            said = []
            for first in range(0, 1000, 20):
                said += await asyncio.gather(*(drop(url, first + n) for n in range(20)))
            assert len(said) == 1000 and set(said) <= {"begun", "CAPACITY_REACHED"}
            await closed(held)

    asyncio.run(play())


def test_who_may_not_come_is_not_let_in(tools):
    async def play():
        async with tools.serving(tools.faulty, "openenv", token=TOKEN) as (url, _):
            for headers in ([], [(b"authorization", b"Bearer wrong")], [(b"origin", b"http://evil.example")]):
                with pytest.raises(ConnectionRefusedError, match=r"40[13]"):
                    await tools.talk(url, headers=headers)
            talk = await tools.talk(url, headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
            assert (await talk.say(reset()))["type"] == "observation"
            asked = await tools.talk(url, "/ws?session_id=x", [(b"authorization", f"Bearer {TOKEN}".encode())])
            assert (await asked.hear())["data"]["code"] == "SESSION_ERROR"

    asyncio.run(play())


def test_requests_over_http_name_their_episode(tools):
    async def play():
        async with (
            tools.serving(tools.faulty, "openenv") as (url, held),
            httpx.AsyncClient(base_url=url, timeout=60) as client,
        ):
            begun = (await client.post("/reset", json={"seed": 2})).json()
            episode = begun["metadata"]["episode"]
            played = await client.post("/step", json={"action": {"text": "hello"}, "episode": episode})
            assert played.json()["metadata"]["turn"] == 1 and played.json()["reward"] is not None
            assert (await client.get("/state", params={"episode": episode})).json()["step_count"] == 1
            for path, body, status in [
                ("/step", {"action": {"text": "x"}}, 422),
                ("/step", {"action": {"text": "x"}, "episode": "none"}, 404),
                ("/reset", {"seed": "x"}, 422),
                ("/Faulty/tasks", {"split": "exam"}, 422),
                ("/Faulty/task", {"split": "train", "index": -1}, 422),
                ("/Faulty/anything", {"split": "train"}, 422),
                ("/Faulty/tasks", [], 422),
                ("/Other/tasks", {"split": "train"}, 404),
            ]:
                answer = await client.post(path, json=body)
                assert answer.status_code == status and answer.json()["kind"], path
            raised = await client.post("/step", json={"action": {"text": "raise"}, "episode": episode})
            assert raised.status_code == 500 and raised.json()["kind"] == "env_error" and held.open == 0

    asyncio.run(play())


def test_tasks_are_listed_as_they_are_begun(tools):
    async def play():
        async with (
            tools.serving(tools.faulty, "openenv") as (url, _),
            httpx.AsyncClient(base_url=url, timeout=60) as client,
        ):
            assert (await client.get("/list_environments")).json() == ["Faulty"]
            kinds = (await client.get("/faulty/splits")).json()
            assert kinds[0] == {"name": "train", "type": "train"} and len(kinds) == 3

            async def ask(what, **words):
                return (await client.post(f"/Faulty/{what}", json={"split": "test", **words})).json()

            assert await ask("num_tasks") == {"num_tasks": 100}
            assert len((await ask("tasks"))["tasks"]) == 100
            assert [one["task"] for one in (await ask("task_range", start=98))["tasks"]] == ["test/98", "test/99"]
            one = (await ask("task", index=4))["task"]
            assert (await client.post("/reset", json={**one, "seed": 0})).json()["metadata"]["task"] == "test/4"

    asyncio.run(play())
