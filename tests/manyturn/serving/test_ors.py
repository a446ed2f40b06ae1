"""Environments on the wire of the Open Reward Standard, request by request; integrations/test_ors.py has its client."""

import asyncio
import json
from importlib.util import find_spec
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto")):
    pytest.skip("no server: pip install 'manyturn[serve]'", allow_module_level=True)

import httpx

from manyturn.serving.wires import ors

pytestmark = pytest.mark.versions


class Session:
    """A client with a session."""

    def __init__(self, url: str, sid: str = ""):
        self.client, self.sid = httpx.AsyncClient(base_url=url, timeout=60), sid

    async def send(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        headers = {"X-Session-ID": self.sid} if self.sid else {}
        content = body if isinstance(body, bytes) else json.dumps(body)
        answer = await self.client.request(method, path, content=content, headers=headers)
        assert answer.status_code == status, answer.text
        return answer

    async def create(self, status: int = 200, **body: Any) -> Any:
        if not self.sid:
            self.sid = events(await self.send("POST", "/create_session", {}))[0][1]
        return (await self.send("POST", "/create", body, status)).json()

    async def call(self, name: str, **given: Any) -> list[tuple[str, str]]:
        return events(await self.send("POST", "/call", {"name": name, "input": given}))

    async def act(self, text: str) -> dict[str, Any]:
        return result(await self.call("act", text=text))


def events(answer: httpx.Response) -> list[tuple[str, str]]:
    """Events, read as strictly as openreward's client: the beginning of each text is stripped."""
    heard = []
    for block in answer.text.split("\n\n"):
        lines = dict(line.split(":", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            heard.append((lines["event"].strip(), lines["data"].lstrip()))
    return heard


def result(heard: list[tuple[str, str]]) -> dict[str, Any]:
    assert heard[0][0] == "task_id" and heard[-1][0] == "end", heard
    return json.loads("".join(text for _, text in heard[1:]))


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_a_session_plays_the_episode_of_the_environment(tools, env):
    turns = tools.transcript(env, 3, garbage=1)

    async def play():
        async with tools.serving(env, "ors") as (url, held):
            one = Session(url)
            await one.create(task_spec={"seed": 3})
            rules, first = (await one.send("GET", f"/{env[9:]}/messages")).json()
            assert (rules["role"], first["blocks"][0]["text"]) == ("system", turns[0].text)
            assert first["blocks"][0]["detail"]["env_identity"] == held.seats.identity.plain()
            offered = {tool["name"] for tool in (await one.send("GET", "/task_tools")).json()["tools"]}
            for turn in turns[1:]:
                name, given = "act", {"text": turn.action}
                if turn.action.startswith("{"):  # a call of a tool
                    name, given = (call := json.loads(turn.action))["name"], call["arguments"]
                assert name in offered
                output = result(await one.call(name, **given))["output"]
                assert [block["text"] for block in output["blocks"]] == [turn.text]
                assert (output["reward"], output["finished"]) == (turn.reward, turn.ended)
                facts = output["metadata"]
                assert (facts["reward_parts"], facts["truncated"]) == (turn.parts, turn.truncated)
                assert "answer" not in facts
            assert facts["success"] is True
            assert (await one.act("more"))["reason"] == "episode_finished" and held.open == 0

    asyncio.run(play())


def test_a_call_that_is_asked_for_again_is_not_played_twice_and_calls_keep_their_order(tools):
    async def play():
        async with tools.serving(tools.faulty, "ors", workers=1) as (url, _):
            one = Session(url)
            await one.create(split="train", index=0)
            both = await asyncio.gather(one.act("sleep 0.3"), one.act("b"))
            assert [each["output"]["metadata"]["turn"] for each in both] == [1, 2]
            heard = await one.call("act", text="c")
            body = {"name": "act", "input": {"text": "c"}, "task_id": heard[0][1]}
            assert events(await one.send("POST", "/call", body)) == heard
            assert (await one.act("d"))["output"]["metadata"]["turn"] == 4
            unknown = await one.send("POST", "/call", {**body, "task_id": "0" * 32})
            assert events(unknown) == [("error", "unknown task_id")]

    asyncio.run(play())


def test_a_client_reaches_no_task_of_a_split_that_is_not_served(tools):
    async def play():
        async with tools.serving(tools.faulty, "ors", splits=("train",)) as (url, held):
            one, other = Session(url), {"split": "test", "index": 0}
            assert [split["name"] for split in (await one.send("GET", "/splits")).json()] == ["train"]
            for body in (other, {"task_spec": {"task": "test/1"}}, {"task_spec": {"split": "test", "seed": 1}}):
                assert "test" in (await one.create(422, **body))["detail"]
            for path in ("tasks", "num_tasks", "task", "task_range"):
                assert "train only" in (await one.send("POST", f"/{path}", {**other, "stop": 2}, 422)).text
            assert held.open == 0

    asyncio.run(play())


@pytest.mark.parametrize(("limit", "most"), [("_MOST_QUEUED", 2), ("_MOST_QUEUED_BYTES", 2000)])
def test_calls_that_wait_do_not_fill_the_memory_also_where_clients_hang_up(tools, monkeypatch, limit, most):
    monkeypatch.setattr(ors, limit, most)

    async def play():
        async with tools.serving(tools.faulty, "ors", workers=1) as (url, _):
            one = Session(url)
            await one.create(split="train", index=0)
            body = {"name": "act", "input": {"text": "x" * 900}}
            slow = asyncio.create_task(one.act("sleep 1"))
            await asyncio.sleep(0.3)
            statuses = [(await _hang_up(one, body)) for _ in range(4)]
            assert statuses.count(409) >= 2 and statuses.count(200) in (1, 2)
            assert (await slow)["output"]["metadata"]["turn"] == 1
            await one.act("y")

    asyncio.run(play())


async def _hang_up(session: Session, body: dict[str, Any]) -> int:
    """Status of a call whose answer is not waited for."""
    headers = {"X-Session-ID": session.sid}
    async with session.client.stream("POST", "/call", json=body, headers=headers) as answer:
        return answer.status_code


def test_long_results_keep_their_spaces(tools):
    text = "x" + " " * 10_000 + "\u2028\\ é"

    async def play():
        async with tools.serving(tools.faulty, "ors") as (url, _):
            one = Session(url)
            await one.create(task_spec={"seed": 1})
            heard = await one.call("act", text=f"echo {text}")
            assert len(heard) > 3 and text in result(heard)["output"]["blocks"][0]["text"]

    asyncio.run(play())


def test_failures_are_errors_and_no_rewards(tools, capfd):
    async def play():
        async with tools.serving(tools.faulty, "ors", workers=1, timeout=2, limit=1) as (url, held):
            one, other = Session(url), Session(url)
            for action, kind in (("raise", "env_error"), ("die", "infra_error")):
                one.sid = ""
                await one.create(task_spec={"seed": 1})
                for _ in range(2):
                    heard = await one.call("act", text=action)
                    assert heard[-1][0] == "error" and heard[-1][1].startswith(kind) and "purpose" not in heard[-1][1]
            await one.send("POST", "/delete", {})
            one.sid = ""
            await one.create(task_spec={"seed": 1})
            assert (await other.create(503, task_spec={"seed": 1}))["kind"] == "full"
            await one.send("POST", "/ping", {})
            await one.create(422, task_spec={"seed": 1})
            assert (await one.call("look"))[-1][0] == "end" and result(await one.call("look"))["reason"] == "not_found"
            assert result(await one.call("act", words="x"))["reason"] == "input_validation"
            await one.send("POST", "/delete_session", {})
            assert held.open == 0
            await one.send("POST", "/ping", {}, 404)
            await one.send("GET", "/elsewhere/tools", None, 404)
            await one.send("POST", "/score_group", {}, 404)

    asyncio.run(play())
    assert "env_error in turn 1" in capfd.readouterr().err


def test_a_reward_that_is_not_known_is_not_taken_for_nothing(tools):
    async def play():
        async with tools.serving(tools.unscorable, "ors") as (url, held):
            one = Session(url)
            await one.create(task_spec={"seed": 1})
            heard = await one.call("act", text="1")
            assert heard[-1][0] == "error" and "unscored" in heard[-1][1] and held.open == 0

    asyncio.run(play())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/create", b"\xff"),
        ("/create", {}),
        ("/create", {"task_spec": {"seed": -1}}),
        ("/create", {"task_spec": {"task": "no such"}}),
        ("/create", {"split": "train", "index": 10**9}),
        ("/create", {"split": "train", "index": 0, "task_spec": {}}),
        ("/create", {"task_spec": {}, "toolset_name": "codex"}),
        ("/num_tasks", {"split": "exam"}),
        ("/task", {"split": "train", "index": -1}),
        ("/task_range", {"split": "train", "start": "0"}),
    ],
    ids=str,
)
def test_a_request_that_is_none_is_refused(tools, path, body):
    async def play():
        async with tools.serving(tools.faulty, "ors") as (url, held):
            await Session(url, "session").send("POST", path, body, 422)
            await Session(url).send("POST", "/create", {"task_spec": {}}, 422)
            assert held.open == 0

    asyncio.run(play())
