"""Environments on NeMo Gym's wire, request by request; tests/manyturn/integrations has the tests with its own agent."""

import asyncio
import json
from importlib.util import find_spec

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto")):
    pytest.skip("no server: pip install 'manyturn[serve]'", allow_module_level=True)

import httpx

pytestmark = pytest.mark.versions

COOKIE = "manyturn_episode"
SHOWN = {"responses_create_params": {"input": []}}


def said(text, **words):
    """A step, as the agent sends one when a model has said something."""
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    return {**SHOWN, "response": {"output": [{"type": "reasoning", "summary": []}, message]}, **words}


class Session:
    """A client with a cookie of its own, such as the agent has for each rollout."""

    def __init__(self, url):
        self.client = httpx.AsyncClient(base_url=url, timeout=60)

    async def post(self, path, body, status=200):
        answer = await self.client.post(path, content=body if isinstance(body, bytes) else json.dumps(body))
        assert answer.status_code == status, answer.text
        return answer.json()

    async def reset(self, **drawn):
        return await self.post("/reset", {**SHOWN, "manyturn": drawn, "agent_ref": {"name": "x"}, "_ng_task_index": 1})


def test_a_session_plays_the_episode_of_the_environment(tools):
    turns = tools.transcript("manyturn/Desk-v0", 3, garbage=1)

    async def play():
        async with tools.serving("manyturn/Desk-v0", "nemo-gym") as (url, held):
            one, other = Session(url), Session(url)
            begun = await one.reset(seed=3)
            assert begun["observation"] == turns[0].text and begun["info"]["supports_explicit_close"] is True
            assert begun["info"]["env_identity"] == held.seats.identity.plain()
            await other.post("/ng-rollout/4-2/reset", {**SHOWN, "manyturn": {"seed": 4}})
            for turn in turns[1:]:
                step = await one.post("/step", said(turn.action))
                assert (step["observation"], step["reward"]) == (turn.text, turn.reward)
                assert step["truncated"] == turn.truncated
                assert step["terminated"] == (turn.ended and not turn.truncated)
                facts = step["info"]
                assert (facts["reward_parts"], facts["text"]) == (turn.parts, turn.text) and "answer" not in facts
            assert facts["success"] is True and held.open == 1
            assert (await one.post("/step", said("more"), 409))["kind"] == "ended"
            await one.post("/close", {})
            await other.reset(seed=5)
            assert held.open == 1  # the one that it had has been left
            await other.post("/close", {})
            assert held.open == 0 and (await other.post("/step", said("x"), 404))["kind"] == "no_episode"

    asyncio.run(play())


def test_a_step_that_is_asked_for_again_is_not_played_twice(tools):
    async def play():
        async with tools.serving(tools.faulty, "nemo-gym", workers=1, limit=1) as (url, _):
            one = Session(url)
            await one.reset(seed=1)
            slow = said("sleep 0.5", _ng_step_request_id="a")
            first, again = await asyncio.gather(one.post("/step", slow), one.post("/step", slow))
            assert first == again and first["info"]["turn"] == 1
            for number in range(5):  # more than are kept with one episode at once
                stranger = Session(url)
                stranger.client.cookies.set(COOKIE, f"{number:016x}")
                await stranger.post("/step", said("x", _ng_step_request_id="a"), 404)
            assert await one.post("/step", slow) == first
            assert (await one.post("/step", said("x", _ng_step_request_id="b")))["info"]["turn"] == 2
            await one.post("/step", said("raise", _ng_step_request_id="c"), 500)
            assert (await one.post("/step", said("raise", _ng_step_request_id="c"), 500))["kind"] == "env_error"
            for name in ("", "x" * 129, 5):
                await one.post("/step", said("x", _ng_step_request_id=name), 422)

    asyncio.run(play())


def test_failures_have_a_status_and_no_rewards(tools, capfd):
    async def play():
        settings = {"workers": 1, "timeout": 2, "limit": 1, "env_args": {"max_turns": 2}}
        async with tools.serving(tools.faulty, "nemo-gym", **settings) as (url, held):
            one, other = Session(url), Session(url)

            async def refused(session, path, body, status, kind):
                answer = await session.post(path, body, status)
                assert answer["kind"] == kind and "reward" not in answer and "purpose" not in answer["detail"]

            await refused(one, "/step", said("hello"), 404, "no_episode")
            for action, status, kind in (("raise", 500, "env_error"), ("die", 503, "infra_error")):
                await one.reset(seed=1)
                await refused(one, "/step", said(action), status, kind)
                await refused(one, "/step", said("hello"), status, kind)
            await one.reset(seed=1)
            await refused(other, "/reset", SHOWN, 503, "full")
            assert not (await one.post("/step", said("a")))["truncated"]
            step = await one.post("/step", said("b"))
            assert (step["truncated"], step["terminated"]) == (True, False) and held.open == 0
            for path in ("/verify", "/seed_session", "/close_session"):
                await refused(one, path, {}, 422, "bad_request")

    asyncio.run(play())
    assert "env_error in turn 1" in capfd.readouterr().err


def test_a_reward_that_is_not_known_is_not_taken_for_nothing(tools):
    async def play():
        async with tools.serving(tools.unscorable, "nemo-gym") as (url, held):
            one = Session(url)
            await one.reset(seed=1)
            assert (await one.post("/step", said("1"), 503))["kind"] == "unscored" and held.open == 0

    asyncio.run(play())


@pytest.mark.deep
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/step", b""),
        ("/step", b"\xff"),
        ("/step", b"[" * 100_000),
        ("/step", []),
        ("/step", {}),
        ("/step", {"response": "hello"}),
        ("/step", {"response": {}}),
        ("/step", {"response": {"output": ["hello"]}}),
        ("/step", {"response": {"output": [{"type": "function_call", "name": "search", "arguments": "{}"}]}}),
        ("/step", {"response": {"output": [{"type": "message", "content": [{"type": "output_text"}]}]}}),
        ("/step", said("x" * 1_000_001)),
        ("/step", said("\ud800")),
        ("/reset", {"manyturn": {"sed": 1}}),
        ("/reset", {"manyturn": {"\ud800": 1}}),
        ("/reset", {"manyturn": {"seed": "1"}}),
        ("/reset", {"manyturn": {"task": "\ud800"}}),
        ("/reset", {"manyturn": {"split": "exam"}}),
        ("/reset", {"manyturn": []}),
        ("/aggregate_metrics", {"verify_responses": [1]}),
    ],
)
def test_garbage_plays_nothing(tools, path, body):
    async def play():
        async with tools.serving(tools.faulty, "nemo-gym") as (url, held):
            one = Session(url)
            await one.reset(seed=5)
            assert (await one.post(path, body, 422))["kind"] == "bad_request"
            if path == "/step":
                assert (await one.post("/step", said("hello")))["info"]["turn"] == 1 and held.open == 1

    asyncio.run(play())


def test_rows_of_a_split_begin_its_tasks(tools):
    async def play():
        async with tools.serving(tools.faulty, "nemo-gym") as (url, _):
            one = Session(url)
            text = (await one.client.get("/rows", params={"split": "test", "first": 98, "count": 5})).text
            rows = [json.loads(line) for line in text.splitlines()]
            assert [row["manyturn"]["task"] for row in rows] == ["test/98", "test/99"]
            [told] = rows[0]["responses_create_params"]["input"]
            assert told["role"] == "system" and told["content"]
            facts = (await one.post("/reset", rows[0]))["info"]
            assert {name: facts[name] for name in ("task", "split", "seed")} == rows[0]["manyturn"]
            for wrong in ({"split": "exam"}, {"first": "x"}, {"first": -1}, {"number": 1}):
                assert (await one.client.get("/rows", params=wrong)).status_code == 422

    asyncio.run(play())


def test_what_is_masked_or_unknown_is_in_no_mean(tools):
    rollouts = [
        {"_ng_task_index": 0, "reward": 1.0, "info": {"success": True}},
        {"_ng_task_index": 0, "reward": 0.5, "info": {"success": None}},
        {"_ng_task_index": 1, "reward": 0.0, "mask_sample": True},
        {"_ng_task_index": 1, "reward": float("nan")},
        {"_ng_task_index": [1], "reward": 10**400},
    ]

    async def play():
        async with tools.serving(tools.faulty, "nemo-gym") as (url, _):
            means = await Session(url).post("/aggregate_metrics", {"verify_responses": rollouts})
            assert means["key_metrics"] == {"mean/reward": 0.75, "mean/success": 1.0}
            assert means["agent_metrics"]["rollouts"] == 5 and means["agent_metrics"]["masked"] == 1
            assert [group["_ng_task_index"] for group in means["group_level_metrics"]] == [0, 1]
            assert (await Session(url).post("/aggregate_metrics", {"verify_responses": []}))["key_metrics"] == {}

    asyncio.run(play())


def test_who_may_not_come_is_not_let_in(tools):
    async def play():
        token = "0123456789abcdef-a-token"
        async with tools.serving(tools.faulty, "nemo-gym", token=token) as (url, _):
            assert (await Session(url).client.post("/reset", json=SHOWN)).status_code == 401
            assert (await Session(url.replace("//", f"//user:{token}@")).reset(seed=1))["info"]["turn"] == 0

    asyncio.run(play())
