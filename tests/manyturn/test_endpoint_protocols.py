"""Another protocol, or a stream, loses what a server sent, or sends what it refuses; the servers here are strict."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needs_endpoint import KEY, Server, calling, completion
from strict_endpoints import Refused, check_message_request, check_response_request, events, message, response, stream

from manyturn.agents.records.episode_rows import read_turns
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.toolset import Toolset
from manyturn.envs.users.endpoint.llm_client import ModelOptions
from manyturn.envs.users.llm_user import ModelUser

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"
WORDS = ("--endpoint.first-wait", 0.01, "--endpoint.attempts", 3)
SECRET = "sk-ant-not-to-be-seen-anywhere"
LADDER = '''
import manyturn as mt
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Toolset


class Ladder(mt.TextEnv):
    """A ladder of three rungs, climbed one by one, two at the first turn."""

    max_turns = 6

    def __init__(self):
        super().__init__()
        self._toolset = Toolset([self.climb])
        self.tools = self._toolset.schemas
        self.instructions = with_tools("Climb to rung 3.", self.tools)

    def tasks(self, split):
        return [mt.Task(f"{split}/0", split, {"split": split})]

    def begin(self, task, rng):
        self._rung = 0
        return "rung 0"

    def respond(self, action):
        answered = self._toolset.answer(action)
        if self._rung == 3:
            return self.succeed(answered.text)
        return self.go_on(answered.text) if answered.valid else self.invalid(answered.text)

    def climb(self, rung: int) -> str:
        """Climb.

        Args:
            rung: the next one.
        """
        self._rung += rung == self._rung + 1
        return f"rung {self._rung}"
'''


@pytest.fixture
def ladder(tmp_path) -> str:
    (tmp_path / "ladder.py").write_text(LADDER)
    return f"{tmp_path / 'ladder.py'}:Ladder"


@pytest.fixture
def server(endpoint_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", endpoint_server.url.removesuffix("/v1"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    return endpoint_server


def strictly(answer: Callable[[dict[str, Any], int], bytes], *, streams: str = "as asked") -> Any:
    """An entry of a server's script: refuses as the protocol does, and answers whole or as a stream."""

    def reply(handler: Any) -> tuple[int, bytes, dict[str, str]]:
        body, path = handler.asked, handler.path
        check = {"/v1/messages": check_message_request, "/v1/responses": check_response_request}.get(path)
        try:
            if check is not None:
                check(path, dict(handler.headers), body)
        except (Refused, ValueError) as fault:
            return 400, json.dumps({"type": "error", "error": {"message": f"messages.0: {fault}"}}).encode(), {}
        earlier = [one for one in body.get("messages", body.get("input")) if one.get("role") != "user"]
        raw = answer(body, len(earlier))
        if streams == "always" or body.get("stream"):
            return 200, stream(raw), {"Content-Type": "text/event-stream"}
        return 200, raw, {}

    return reply


def summary(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text())


def climbs(number: int) -> list[dict[str, int]]:
    return [{"rung": 1}, {"rung": 2}] if number == 0 else [{"rung": 3}]


def thinks(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": f"signed {text}"}


def message_climber(body: dict[str, Any], earlier: int) -> bytes:
    """Thinks between its calls, and refuses a history in which its thinking changed its place."""
    replies = [turn["content"] for turn in body["messages"] if turn["role"] == "assistant"]
    number = len(replies)
    assert all(blocks[0] == thinks(f"THOUGHT-{n}") for n, blocks in enumerate(replies))
    calls = [
        {"type": "tool_use", "id": f"toolu_{number}_{n}", "name": "climb", "input": given}
        for n, given in enumerate(climbs(number))
    ]
    return message(
        thinks(f"THOUGHT-{number}"),
        {"type": "redacted_thinking", "data": "hidden"},
        {"type": "text", "text": "Up."},
        calls[0],
        *calls[1:],
        stop="tool_use",
        usage={"cache_read_input_tokens": 5, "cache_creation_input_tokens": 2},
    )


def response_climber(body: dict[str, Any], earlier: int) -> bytes:
    number = sum(item.get("type") == "reasoning" for item in body["input"]) // 2
    items: list[dict[str, Any]] = []
    for n, given in enumerate([*climbs(number), {"rung": 9}][:2]):
        thought = {"id": f"rs_{number}{n}", "type": "reasoning", "encrypted_content": "locked"}
        items.append({**thought, "summary": [{"type": "summary_text", "text": f"THOUGHT-{number}"}]})
        call = {"call_id": f"c{number}{n}", "name": "climb", "arguments": json.dumps(given)}
        items.append({"id": f"fc_{number}{n}", "type": "function_call", "status": "completed", **call})
    return response(*items)


def chat_climber(body: dict[str, Any], earlier: int) -> bytes:
    replies = [turn for turn in body["messages"] if turn["role"] == "assistant"]
    assert all(turn["reasoning_content"] == f"THOUGHT-{n}" for n, turn in enumerate(replies))
    calls = [("climb", given) for given in climbs(len(replies))]
    ids = [f"call_{len(replies)}_{n}" for n in range(len(calls))]
    return calling(*calls, ids=ids, reasoning_content=f"THOUGHT-{len(replies)}")


CLIMBERS = {"openai": chat_climber, "openai-responses": response_climber, "anthropic": message_climber}


@pytest.mark.parametrize("streams", ["never", "asked", "always"])
@pytest.mark.parametrize("protocol", CLIMBERS)
def test_tools_and_reasoning_come_and_go_in_every_protocol(command, server, ladder, tmp_path, protocol, streams):
    server.script = [strictly(CLIMBERS[protocol], streams=streams)]
    wish = ("--endpoint.stream", "true") if streams == "asked" else ()
    out = tmp_path / "out"
    native = ("--agent.format", "native_tools", "--out", out)
    ended = command("evaluate", f"{protocol}:m", "--env", ladder, *native, *WORDS, *wish)
    assert ended.code == 0, ended.err
    result, (first, second) = summary(out), (request["body"] for request in server.requests)
    assert (result["success"]["mean"], result["turns"]["mean"]) == (1.0, 2.0)
    assert (
        result["tokens"]["prompt_total"] == {"anthropic": 34}.get(protocol, 20) and result["tokens"]["reply_total"] == 6
    )
    assert [turn["reasoning"] for turn in read_turns(out / "turns.parquet")] == {
        "openai-responses": ["THOUGHT-0\nTHOUGHT-0", "THOUGHT-1\nTHOUGHT-1"]
    }.get(protocol, ["THOUGHT-0", "THOUGHT-1"])
    assert bool(first.get("stream")) == (streams == "asked")
    sent = second.get("messages", second.get("input"))
    if protocol == "anthropic":
        made = json.loads(message_climber({"messages": []}, 0))["content"]
        assert sent[1] == {"role": "assistant", "content": made}
        results = [{"type": "tool_result", "tool_use_id": f"toolu_0_{n}", "content": f"rung {n + 1}"} for n in (0, 1)]
        assert sent[2]["content"] == results
    if protocol == "openai-responses":
        assert sent[1:5] == json.loads(response_climber({"input": []}, 0))["output"]
    command_line = (out / "summary.json").read_text() + ended.out + ended.err
    assert SECRET not in command_line and KEY not in command_line


@pytest.mark.parametrize("protocol", CLIMBERS)
def test_reasoning_that_is_not_to_be_kept_does_not_go_back(command, server, ladder, protocol):
    def forgetful(body: dict[str, Any], earlier: int) -> bytes:
        assert "THOUGHT" not in json.dumps(body) and "include" not in body
        return CLIMBERS[protocol]({"messages": [], "input": []}, 0)

    server.script = [strictly(forgetful)]
    words = ("--agent.format", "native_tools", "--agent.reasoning", "strip", *WORDS)
    ended = command("evaluate", f"{protocol}:m", "--env", ladder, *words)
    assert ended.code == 0 and len(server.requests) > 1, ended.err


TEXT = "<action>go north</action>"


def says(protocol: str, text: str | None, reason: str) -> bytes:
    """A reply of a protocol that ends for a reason: stop, cut, refused or filtered."""
    if protocol == "anthropic":
        words = [] if text is None else [{"type": "text", "text": text}]
        return message(*words, stop={"cut": "max_tokens", "refused": "refusal"}.get(reason, "end_turn"))
    if protocol == "openai":
        finish = {"cut": "length", "filtered": "content_filter"}.get(reason, "stop")
        return completion(text, finish=finish, **({"refusal": "no"} if reason == "refused" else {}))
    words = {"type": "output_text", "text": text, "annotations": []}
    part = {"type": "refusal", "refusal": "no"} if reason == "refused" else words
    parts = [] if text is None and reason != "refused" else [part]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": parts}
    why = {"cut": "max_output_tokens", "filtered": "content_filter"}.get(reason)
    more = {} if why is None else {"status": "incomplete", "incomplete_details": {"reason": why}}
    return response(item, **more)


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [(name, reason) for name in CLIMBERS for reason in ("cut", "refused", "filtered", "empty")],
)
@pytest.mark.parametrize("wish", ["false", "true"])
def test_a_reply_that_means_nothing_is_counted_by_its_reason(command, server, tmp_path, protocol, reason, wish):
    if (protocol, reason) == ("anthropic", "filtered"):
        pytest.skip("Messages has no such reason")
    text = TEXT if reason == "cut" else None
    server.script = [strictly(lambda body, earlier: says(protocol, text, reason))]
    words = ("--env", MAZE, "--limit", 1, "--out", tmp_path, "--endpoint.stream", wish, *WORDS)
    ended = command("evaluate", f"{protocol}:m", *words)
    assert ended.code == 0, ended.err
    turns, result = read_turns(tmp_path / "turns.parquet"), summary(tmp_path)
    assert result["invalid_action_rate"] == 1.0 and result["success"]["mean"] == 0.0
    assert {bool(turn["cut"]) for turn in turns} == {reason == "cut"}
    faults = {turn["fault"] for turn in turns}
    assert reason == "cut" or faults == {reason}


@pytest.mark.parametrize("protocol", CLIMBERS)
def test_a_stream_that_breaks_anywhere_is_tried_again_and_never_a_short_reply(command, server, tmp_path, protocol):
    whole = says(protocol, TEXT, "stop")
    count = len(events(whole))
    head = {"Content-Type": "text/event-stream"}
    pieces = stream(whole).split(b"\n\n")
    # The last event of Messages says nothing new, and neither do the usage and the end of a chat completion.
    spare = {"openai": 3, "openai-responses": 1, "anthropic": 2}[protocol]
    broken = [(200, b"\n\n".join(pieces[:n]) + b"\n\n", head) for n in range(2, count + 1 - spare)]
    broken.append((200, stream(whole)[:-30], {**head, "Content-Length": "99999", "Connection": "close"}))
    broken.append((200, b"data: {\n\n", head))
    broken.append((200, b'data: {"type": "error", "error": {"message": "Overloaded"}}\n\n', head))
    broken.append((200, b"data: " + b"9" * 5_000_000, head))
    server.script = [(200, whole, {}), *broken, (200, stream(whole, end=b"\r\n\r\n"), head)]
    words = ("--env", MAZE, "--limit", 1, "--out", tmp_path, "--endpoint.first-wait", 0, "--endpoint.attempts", 40)
    ended = command("evaluate", f"{protocol}:m", *words)
    assert ended.code == 0, ended.err
    assert {turn["reply"] for turn in read_turns(tmp_path / "turns.parquet")} == {TEXT}
    assert len(server.requests) > len(broken)


def blocks(*indexes: Any) -> bytes:
    """A message as a stream whose blocks have these indexes."""
    begun = [
        {"type": "content_block_start", "index": n, "content_block": {"type": "text", "text": TEXT}} for n in indexes
    ]
    over = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    sent = [{"type": "message_start", "message": {}}, *begun, over, {"type": "message_stop"}]
    return b"".join(b"data: %s\n\n" % json.dumps(one).encode() for one in sent)


DEEP = json.loads("[" * 900 + "]" * 900)


@pytest.mark.parametrize(
    ("protocol", "answer"),
    [("anthropic", blocks(0, "a")), ("openai", completion(TEXT, reasoning_details=DEEP))],
    ids=["blocks without an order", "reasoning without a bottom"],
)
def test_an_answer_that_cannot_be_put_together_or_sent_back_is_tried_again(command, server, tmp_path, protocol, answer):
    whole = says(protocol, TEXT, "stop")
    server.script = [(200, whole, {}), (200, answer, {}), (200, whole, {})]
    ended = command("evaluate", f"{protocol}:m", "--env", MAZE, "--limit", 1, "--out", tmp_path, *WORDS)
    assert ended.code == 0, ended.err
    turns = read_turns(tmp_path / "turns.parquet")
    assert {turn["reply"] for turn in turns} == {TEXT} and len(server.requests) == len(turns) + 1


REFUSALS = {
    ("anthropic", "`temperature` is deprecated for this model."): "--sampling.temperature none",
    ("anthropic", "max_tokens: 200000 > 64000, which is the maximum allowed number"): "--sampling.max-tokens",
    ("anthropic", "messages.1.content.0: Invalid `signature` in `thinking` block"): "--agent.reasoning",
    ("anthropic", "thinking.type: Input should be 'enabled'"): "leave thinking out of --sampling.extra-body",
    ("openai-responses", "Encrypted content is not supported with this model."): "--agent.reasoning strip",
    ("openai-responses", "Unsupported parameter: 'temperature'"): "--sampling.temperature none",
    ("openai-responses", "Invalid 'max_output_tokens': integer below minimum value."): "--sampling.max-tokens",
    ("openai", "This model only support stream mode, please enable the stream parameter"): "--endpoint.stream true",
}


@pytest.mark.parametrize(("protocol", "refusal"), REFUSALS)
def test_a_refusal_names_the_option_that_helps(command, server, protocol, refusal):
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": refusal}})
    server.script = [(400, body.encode(), {})]
    more = ("--sampling.temperature", 0.5, "--sampling.extra-body", '{thinking = {type = "on"}}')
    ended = command("evaluate", f"{protocol}:m", "--env", MAZE, "--limit", 1, *more)
    assert ended.code == 2 and REFUSALS[protocol, refusal] in ended.err


def test_a_conversation_that_messages_finds_too_long_is_truncated(command, server, tmp_path):
    said = b"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"
    server.script = [strictly(lambda *_: says("anthropic", TEXT, "stop")), (400, said, {})]
    ended = command("evaluate", "anthropic:m", "--env", MAZE, "--limit", 1, "--out", tmp_path)
    assert ended.code == 0 and summary(tmp_path)["endings"]["truncated"] == 1


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["anthropic"], "anthropic:MODEL"),
        (["claude-opus-5"], "anthropic:claude-opus-5"),
        (["anthropic:m", "--sampling.seed", "true"], "sampling.seed"),
        (["openai-responses:m", "--sampling.stop", "x"], "sampling.stop"),
        (["anthropic:m", "--endpoint.length-field", "max_tokens"], "endpoint.length_field"),
        (["anthropic:m", "--sampling.extra-body", '{system = "x"}'], "agent.system"),
        (["openai:m", "--sampling.extra-body", "{stream = true}"], "endpoint.stream"),
    ],
)
def test_an_option_that_a_protocol_does_not_have_is_an_error(command, server, words, option):
    ended = command("evaluate", *words, "--env", MAZE)
    assert ended.code == 2 and option in ended.err and not server.requests


def test_an_entry_that_newer_models_refuse_is_sent_only_if_it_was_given(command, server):
    server.script = [strictly(lambda *_: says("anthropic", TEXT, "stop"))]
    for words in ((), ("--sampling.temperature", 0.5, "--sampling.stop", "END")):
        assert command("evaluate", "anthropic:m", "--env", MAZE, "--limit", 1, *words).code == 0
    first, last = server.requests[0]["body"], server.requests[-1]["body"]
    assert "temperature" not in first and "seed" not in first
    assert (last["temperature"], last["stop_sequences"]) == (0.5, ["END"])


def test_a_secret_that_a_server_quotes_is_masked(command, server):
    server.script = [(401, f'{{"error": {{"message": "invalid x-api-key {SECRET}"}}}}'.encode(), {})]
    ended = command("evaluate", "anthropic:m", "--env", MAZE)
    assert ended.code == 2 and "ANTHROPIC_API_KEY" in ended.err and SECRET not in ended.err


def press(button: str) -> str:
    """Press a button.

    Args:
        button: which.
    """
    return f"{button} pressed"


def presses(protocol: str, body: dict[str, Any]) -> bytes:
    """A user that presses a button, and then says so."""
    if len(body.get("messages", body.get("input"))) > 1:
        return says(protocol, "Pressed.", "stop")
    if protocol == "anthropic":
        return message({"type": "tool_use", "id": "t1", "name": "press", "input": {"button": "a"}}, stop="tool_use")
    call = {"type": "function_call", "call_id": "c", "name": "press", "arguments": '{"button": "a"}'}
    return response({**call, "status": "completed"})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", ["openai-responses", "anthropic"])
def test_a_user_of_an_environment_speaks_every_protocol(server, protocol, stream):
    server.script = [strictly(lambda body, earlier: presses(protocol, body))]
    options = ModelOptions.model_validate({"model": "m", "protocol": protocol, "stream": stream, "wait": 0})
    user = ModelUser(lambda task: "You want tea.", options, greeting=None, tools=Toolset([press]).schemas)
    user.begin(Task("one", "train", {"x": 1}), generator(0))
    heard = user.hear("Press a.")
    assert [json.loads(call) for call in heard.calls] == [{"name": "press", "arguments": {"button": "a"}}]
    assert user.see(["a pressed"]).utterance == "Pressed." and protocol in user.name
    first = server.requests[0]["body"]
    assert "seed" not in first and ("temperature" in first) == (protocol != "anthropic")
    with pytest.raises(ValueError, match="seed"):
        ModelOptions.model_validate({"model": "m", "protocol": protocol, "seed": 1})
