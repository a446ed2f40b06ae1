"""Anthropic's Messages. Requests and answers were checked with the types of the package anthropic 2.14.0.

No answer of Anthropic's own server was seen here. Source: platform.claude.com/docs/en/api/messages.

Implementation:
1. Results of calls and the words that follow them are one message of the user, results first.
2. A text that is empty is refused there, so a word in brackets takes its place.
3. Blocks of a reply that holds thinking are sent back as they came and in their order. Those of a reply that was cut
   are not: thinking that was cut has no signature.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.envs.users.endpoint.protocols.event_stream import Assembly
from manyturn.envs.users.endpoint.protocols.protocol import (
    ITEMS,
    EndpointProtocol,
    call,
    completed,
    split_system,
    usage,
)
from manyturn.envs.users.endpoint.protocols.service import Manner

_VERSION = "2023-06-01"
_EMPTY = {"user": "(nothing)", "assistant": "(no reply)"}
_THINKING = ("thinking", "redacted_thinking")
_CUT = "length"
_FINISH = {"tool_use": "tool_calls", "max_tokens": _CUT, "model_context_window_exceeded": _CUT, "refusal": "refusal"}
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class Messages(EndpointProtocol):
    """Messages at ``/v1/messages``."""

    title, reply, path = "Anthropic's Messages", "a message", "/v1/messages"
    address, key, example = "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "https://api.anthropic.com"
    lacks = frozenset({"seed"})
    unset = frozenset({"temperature"})  # newer models refuse it
    length = "max_tokens"
    taken = {"system": "set agent.system", "stop_sequences": "set sampling.stop"}
    on_reasoning = re.compile(r"messages\.\d[^:]*[^`]*`?(?:thinking|redacted_thinking|signature)\b")

    def url(self, address: str) -> str:
        return address + (self.path.removeprefix("/v1") if re.search(r"/v\d+$", address) else self.path)

    def base(self, written: str) -> str:
        return written.rstrip("/").removesuffix("/messages").removesuffix("/v1")

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def request(self, body: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
        system, messages = split_system(body["messages"])
        wire = {name: value for name, value in body.items() if name not in ("messages", "stop", "tools")}
        wire["messages"] = _turns(messages)
        if system.strip():
            wire["system"] = system
        if body.get("stop"):
            wire["stop_sequences"] = body["stop"]
        if body.get("tools"):
            wire["tools"] = [_tool(tool["function"]) for tool in body["tools"]]
        return {**wire, **({"stream": True} if manner.stream else {})}

    def completion(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        blocks, reason = answer["content"], answer["stop_reason"]
        finish = _FINISH.get(reason, "stop")
        words = [block["text"] for block in blocks if block["type"] == "text"]
        calls = [call(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
        message: dict[str, Any] = {"content": "".join(words) if words or finish == "refusal" else None}
        if calls:
            message["tool_calls"] = calls
        if any(block["type"] in _THINKING for block in blocks):
            message["reasoning"] = "\n".join(block["thinking"] for block in blocks if block["type"] == "thinking")
            message |= {} if finish == _CUT else {ITEMS: blocks}
        return completed(message, finish, _tokens(answer.get("usage")))

    def assembly(self, longest: int) -> Assembly:
        return BlockAssembly(longest)

    def sends_reasoning(self, body: Mapping[str, Any]) -> bool:
        blocks = (block for message in body["messages"] for block in message["content"])
        return any(block["type"] in _THINKING for block in blocks)


class BlockAssembly(Assembly):
    """A message from the events of its blocks."""

    def __init__(self, longest: int):
        super().__init__(longest)
        self._answer: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}

    def add(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                self._answer = dict(event["message"])
            case "content_block_start":
                self.held(json.dumps(event["content_block"]))
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                self._grow(event["index"], event["delta"])
            case "message_delta":
                self._answer |= event["delta"]
                counted = {name: count for name, count in (event.get("usage") or {}).items() if count is not None}
                self._answer["usage"] = {**(self._answer.get("usage") or {}), **counted}
            case "message_stop":
                self.done = True
            case "error":
                self._answer, self.done = {"error": event["error"]}, True

    def answer(self) -> dict[str, Any] | None:
        if "error" in self._answer:
            return self._answer
        if self._answer.get("stop_reason") is None:
            return None
        for index, text in self._inputs.items():
            self._blocks[index]["input"] = _object(text)
        return {**self._answer, "content": [self._blocks[index] for index in sorted(self._blocks)]}

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[index]
        if delta["type"] == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + self.held(delta["partial_json"])
        elif (name := _GROWING.get(delta["type"])) is not None:
            block[name] = block.get(name, "") + self.held(delta[name])


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages with blocks, those of one role after each other in one."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        if not turns or turns[-1]["role"] != role:
            turns.append({"role": role, "content": []})
        turns[-1]["content"] += _blocks(message)
    return turns


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
    calls = [
        {"type": "tool_use", "id": one["id"], "name": one["function"]["name"], "input": _input(one["function"])}
        for one in message.get("tool_calls") or ()
    ]
    if ITEMS in message:
        rest = iter(calls)
        blocks = [{**block, **next(rest, {})} if block["type"] == "tool_use" else block for block in message[ITEMS]]
        return [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    text = message.get("content") or ""
    if not text.strip():
        text = "" if calls else _EMPTY[message["role"]]
    return [*([{"type": "text", "text": text}] if text else []), *calls]


def _input(function: Mapping[str, Any]) -> dict[str, Any]:
    value = _object(function["arguments"])
    return value if isinstance(value, dict) else {}


def _object(text: str) -> Any:
    """A call's arguments; as their text where that is no JSON, which is for the environment to answer."""
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    described = {name: function[name] for name in ("name", "description", "strict") if name in function}
    return {**described, "input_schema": function.get("parameters") or {"type": "object", "properties": {}}}


def _tokens(reported: Any) -> Any:
    """Token counts; those of the cache are counted apart there."""
    try:
        cached = reported.get("cache_read_input_tokens") or 0
        prompt = reported["input_tokens"] + cached + (reported.get("cache_creation_input_tokens") or 0)
        return usage(prompt, reported["output_tokens"], cached)
    except (LookupError, TypeError, AttributeError):
        return None
