"""Reasoning that an endpoint returns next to its words is lost: servers refuse the next turn, no record shows it."""

import json
from pathlib import Path
from typing import Any

import pytest
from needs_endpoint import Server

from manyturn.agents.records.episode_rows import read_turns
from manyturn.report.document import document_of

TURNS = 10
LADDER = f'''
import manyturn as mt
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Toolset


class Ladder(mt.TextEnv):
    """A ladder of {TURNS} rungs, climbed one by one."""

    max_turns = {TURNS + 2}

    def __init__(self):
        super().__init__()
        self._toolset = Toolset([self.climb])
        self.tools = self._toolset.schemas
        self.instructions = with_tools("Climb to rung {TURNS}.", self.tools)

    def tasks(self, split):
        return [mt.Task(f"{{split}}/{{i}}", split, {{"i": i, "split": split}}) for i in range(2)]

    def begin(self, task, rng):
        self._rung = 0
        return "rung 0"

    def respond(self, action):
        answered = self._toolset.answer(action)
        if self._rung == {TURNS}:
            return self.succeed(answered.text)
        return self.go_on(answered.text) if answered.valid else self.invalid(answered.text)

    def climb(self, rung: int) -> str:
        """Climb.

        Args:
            rung: the next one.
        """
        self._rung += rung == self._rung + 1
        return f"rung {{self._rung}}"
'''
REFUSAL = "The `reasoning_content` in the thinking mode must be passed back to the API."


@pytest.fixture
def ladder(tmp_path) -> str:
    (tmp_path / "ladder.py").write_text(LADDER)
    return f"{tmp_path / 'ladder.py'}:Ladder"


def thinks(body: dict[str, Any], key: str | None, demands: bool) -> tuple[int, bytes]:
    """Climbs, and thinks about it; a server that demands its thoughts back refuses a history without them."""
    earlier = [message for message in body["messages"] if message["role"] == "assistant"]
    if demands and any(message.get(key) != f"THOUGHT-{n}" for n, message in enumerate(earlier)):
        return 400, json.dumps({"error": {"message": REFUSAL, "type": "invalid_request_error"}}).encode()
    call = {"name": "climb", "arguments": json.dumps({"rung": len(earlier) + 1})}
    calls = [{"id": f"c{len(earlier)}", "type": "function", "function": call}]
    thought = {} if key is None else {key: f"THOUGHT-{len(earlier)}"}
    message = {"role": "assistant", "content": None, "tool_calls": calls, **thought}
    usage = {"prompt_tokens": 50, "completion_tokens": 10}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    return 200, json.dumps({"choices": choices, "usage": usage}).encode()


@pytest.fixture
def server(endpoint_server: Server) -> Server:
    return endpoint_server


def played(command, ladder: str, out: Path, *words: Any):
    names = ("--env", ladder, "--agent.format", "native_tools", "--out", out, "--endpoint.first-wait", 0.01)
    return command("evaluate", "openai:m", *names, *words)


@pytest.mark.parametrize(("key", "demands"), [("reasoning_content", True), ("reasoning", True), ("reasoning", False)])
def test_reasoning_goes_back_as_it_came_and_stands_in_turns_and_report(command, server, ladder, tmp_path, key, demands):
    server.script = [lambda handler: (*thinks(handler.asked, key, demands), {})]
    found = played(command, ladder, tmp_path / "out")
    assert found.code == 0, found.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["success"]["mean"], summary["turns"]["mean"]) == (1.0, TURNS)
    rows = read_turns(tmp_path / "out" / "turns.parquet")
    assert [row["reasoning"] for row in rows[:TURNS]] == [f"THOUGHT-{n}" for n in range(TURNS)]
    assert not any("THOUGHT" in row["action"] for row in rows)
    trace = document_of(tmp_path / "out").chunk(0)[0]
    assert trace["reasoning"] == [row["reasoning"] for row in rows[:TURNS]]


def test_a_server_that_refuses_the_history_names_the_option_that_changes_it(command, server, ladder, tmp_path):
    """Some servers demand their reasoning back, and others refuse it."""
    server.script = [lambda handler: (*thinks(handler.asked, "reasoning_content", True), {})]
    found = played(command, ladder, tmp_path / "strip", "--agent.reasoning", "strip")
    assert found.code != 0 and "--agent.reasoning keep sends it back" in found.err
    sent = [request["body"]["messages"] for request in server.requests]
    assert not any("THOUGHT" in json.dumps(messages) for messages in sent)


def test_a_budget_of_tokens_ends_an_episode(command, server, ladder, tmp_path):
    server.script = [lambda handler: (*thinks(handler.asked, None, False), {})]
    found = played(command, ladder, tmp_path / "budget", "--agent.max-episode-tokens", 35)
    summary = json.loads((tmp_path / "budget" / "summary.json").read_text())
    assert found.code == 0 and summary["truncations"] == {"tokens": 2} and summary["turns"]["mean"] == 4
    for request in server.requests:
        turns = sum(message["role"] == "assistant" for message in request["body"]["messages"])
        assert request["body"]["max_tokens"] == 35 - 10 * turns, "no reply goes beyond what is left"


def test_prices_are_answered_where_the_server_counts_nothing(command, server, ladder, tmp_path):
    def uncounted(handler: Any) -> tuple[int, bytes, dict[str, str]]:
        status, raw = thinks(handler.asked, None, False)
        plain = json.loads(raw)
        del plain["usage"]
        return status, json.dumps(plain).encode(), {}

    server.script = [uncounted]
    prices = ("--endpoint.price-in", 1, "--endpoint.price-out", 2)
    found = played(command, ladder, tmp_path / "prices", *prices)
    assert found.code == 0 and "cost unknown" in found.out
