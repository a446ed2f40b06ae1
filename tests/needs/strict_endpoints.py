"""Servers that speak Messages and Responses as strictly as their documentation: what they refuse, and their streams.

Where the packages anthropic and openai are installed, their types judge requests and answers too.
"""

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter

_MESSAGES = frozenset(
    {"model", "max_tokens", "messages", "system", "tools", "stop_sequences", "temperature", "top_p", "stream"}
    | {"thinking", "tool_choice", "cache_control", "metadata"}
)
_RESPONSES = frozenset(
    {"model", "input", "instructions", "tools", "max_output_tokens", "temperature", "top_p", "stream", "store"}
    | {"include", "reasoning", "parallel_tool_calls"}
)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Refused(Exception):
    """A request that the protocol does not allow."""


def demand(holds: Any, fault: str) -> None:
    if not holds:
        raise Refused(fault)


def _drained(value: Any) -> Any:
    """A checked value with its lazy parts read, which is when the types check them."""
    if isinstance(value, Mapping):
        return {name: _drained(inner) for name, inner in value.items()}
    plain = isinstance(value, str | int | float | BaseModel | None)
    return value if plain else [_drained(inner) for inner in value]


def by_package(package: str, module: str, name: str, value: Any) -> None:
    """Check a value with a type of the vendor's own package, where that is installed."""
    if importlib.util.find_spec(package) is not None:
        _drained(_type(f"{package}.types.{module}", name).validate_python(value))


@cache  # what is read lazily needs its type until then
def _type(module: str, name: str) -> TypeAdapter[Any]:
    return TypeAdapter(getattr(importlib.import_module(module), name))


def check_message_request(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> None:
    """Raise Refused for a request that Messages does not allow."""
    sent = {name.lower(): value for name, value in headers.items()}
    demand(path == "/v1/messages", f"no such path {path}")
    demand(sent.get("anthropic-version") == "2023-06-01" and sent.get("x-api-key"), "header missing")
    demand("authorization" not in sent, "two ways of authentication")
    for name in body.keys() - _MESSAGES:
        raise Refused(f"{name}: Extra inputs are not permitted")
    by_package("anthropic", "message_create_params", "MessageCreateParamsBase", body)
    demand(body["messages"] and body["messages"][0]["role"] == "user", "the first message is of the user")
    for tool in body.get("tools", ()):
        demand(tool["input_schema"]["type"] == "object" and _TOOL_NAME.fullmatch(tool["name"]), "a tool without schema")
    due: list[str] = []
    for message in body["messages"]:
        blocks = message["content"]
        demand(blocks, "messages: all messages must have non-empty content")
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        demand(answered == due, "`tool_use` ids were found without `tool_result` blocks immediately after")
        kinds = [block["type"] for block in blocks]
        demand("tool_result" not in kinds[len(answered) :], "results come first")
        demand(all(block["text"].strip() for block in blocks if block["type"] == "text"), "text must be non-empty")
        demand(all(isinstance(b["input"], dict) for b in blocks if b["type"] == "tool_use"), "input is an object")
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]
    demand(body["messages"][-1]["role"] == "user", "prefill is not supported")


def check_response_request(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> None:
    """Raise Refused for a request that Responses does not allow."""
    demand(path == "/v1/responses" and headers.get("Authorization", "").startswith("Bearer "), "header missing")
    for name in body.keys() - _RESPONSES:
        raise Refused(f"Unknown parameter: '{name}'.")
    by_package(
        "openai", "responses.response_create_params", "ResponseCreateParamsNonStreaming", {**body, "stream": None}
    )
    demand(body["store"] is False, "nothing is stored")
    due: set[str] = set()
    thought = False
    for item in body["input"]:
        kind = item.get("type", "message")
        demand(not thought or kind in ("message", "function_call"), "provided without its required following item")
        thought = kind == "reasoning"
        demand(not thought or item.get("encrypted_content"), f"Item with id '{item.get('id')}' not found")
        if kind == "function_call":
            due.add(item["call_id"])
        elif kind == "function_call_output":
            demand(item["call_id"] in due, f"No tool call found for {item['call_id']}")
            due.discard(item["call_id"])
    demand(not due and not thought, "No tool output found for function call")


def message(*blocks: dict[str, Any], stop: str = "end_turn", usage: Mapping[str, int] | None = None) -> bytes:
    """An answer of Messages."""
    counted = {"input_tokens": 10, "output_tokens": 3, **(usage or {})}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
    answer = {**head, "content": list(blocks), "stop_reason": stop, "usage": counted}
    by_package("anthropic", "message", "Message", answer)
    return json.dumps(answer).encode()


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> bytes:
    """An answer of Responses."""
    details = {"input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}}
    counted = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13, **details}
    head = {"id": "resp_1", "object": "response", "created_at": 1.0, "model": "m", "tools": [], "tool_choice": "auto"}
    answer = {
        **head,
        "parallel_tool_calls": True,
        "output": list(items),
        "status": status,
        "usage": {**counted, "output_tokens_details": {"reasoning_tokens": 1}},
        **more,
    }
    by_package("openai", "responses.response", "Response", answer)
    return json.dumps(answer).encode()


def message_events(raw: bytes) -> Iterator[dict[str, Any]]:
    """The events in which Messages streams an answer."""
    answer = json.loads(raw)
    empty = {"content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": {**answer, **empty}}
    yield {"type": "ping"}
    grown = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
    for index, block in enumerate(answer["content"]):
        kind = block["type"]
        bare = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **bare.get(kind, {})}}
        deltas: list[dict[str, Any]] = []
        if kind in grown:
            delta, name = grown[kind]
            deltas = [{"type": delta, name: half} for half in halves(block[name])]
        if kind == "thinking":
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if kind == "tool_use":
            text = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": half} for half in ("", *halves(text))]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": answer["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def response_events(raw: bytes) -> Iterator[dict[str, Any]]:
    """The events in which Responses streams an answer; like some servers it leaves the items out of the last one."""
    answer = json.loads(raw)
    yield {"type": "response.created", "response": {**answer, "output": [], "status": "in_progress"}}
    for index, item in enumerate(answer["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}}
        yield {"type": "response.output_text.delta", "output_index": index, "delta": "x"}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{answer['status']}", "response": {**answer, "output": []}}


def chunks(raw: bytes) -> Iterator[dict[str, Any]]:
    """The chunks in which a chat completion is streamed, and its usage after them."""
    answer = json.loads(raw)
    (choice,) = answer["choices"]
    message = {"reasoning_content": None, "refusal": None, "tool_calls": None, **choice["message"]}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for name in ("reasoning_content", "content", "refusal"):
        deltas += [{name: half} for half in halves(message[name] or "")]
    for index, call in enumerate(message["tool_calls"] or ()):
        text = call["function"]["arguments"]
        deltas.append({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": half}}]} for half in halves(text)]
    for delta in deltas:
        yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {"choices": [], "usage": answer["usage"]}


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def events(raw: bytes) -> list[dict[str, Any]]:
    """The events in which an answer is streamed."""
    answer = json.loads(raw)
    kinds = {"content": message_events, "output": response_events, "choices": chunks}
    return list(next(make for name, make in kinds.items() if name in answer)(raw))


def stream(raw: bytes, *, end: bytes = b"\n\n") -> bytes:
    """An answer as a stream of events."""
    lines = [f"event: {event.get('type', 'chunk')}\ndata: {json.dumps(event)}" for event in events(raw)]
    last = ["data: [DONE]"] if b'"choices"' in raw else []
    return (
        b": a comment"
        + end
        + end.join(line.encode().replace(b"\n", end[: len(end) // 2]) for line in lines + last)
        + end
    )
