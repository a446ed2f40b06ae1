"""OpenAI's Responses. Requests and answers were checked with the types of the package openai 3.57.0.

No answer of OpenAI's own server was seen here. Source: developers.openai.com/api/docs/api-reference/responses.

Implementation:
1. Nothing is stored at the server (``store`` is false), so each request holds the conversation.
2. Items of a reply that holds reasoning are sent back as they came and in their order, which needs their encrypted
   content: ``include`` asks for it. An item that has neither that nor a text is left out, for the server has no other.
3. Tools are not strict unless their schema says so; strictness would refuse schemas with optional arguments.
"""

import re
from collections.abc import Mapping
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

_ENCRYPTED = "reasoning.encrypted_content"
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
_OVER = ("response.completed", "response.incomplete", "response.failed")


class Responses(EndpointProtocol):
    """Responses at ``/responses``."""

    title, reply, path = "OpenAI's Responses", "a response", "/responses"
    lacks = frozenset({"seed", "stop"})
    length = "max_output_tokens"
    taken = {"instructions": "set agent.system", "input": "it is the episode"}
    on_reasoning = re.compile(r"encrypted[ _]content|\brs_|type 'reasoning'", re.IGNORECASE)

    def request(self, body: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
        system, messages = split_system(body["messages"])
        wire = {name: value for name, value in body.items() if name not in ("messages", "tools", "max_tokens")}
        wire["input"] = [item for message in messages for item in _items(message)]
        if system:
            wire["instructions"] = system
        if "max_tokens" in body:
            wire["max_output_tokens"] = body["max_tokens"]
        if body.get("tools"):
            wire["tools"] = [_tool(tool["function"]) for tool in body["tools"]]
        wished = {"store": False, **({"include": [_ENCRYPTED]} if manner.reasoning else {})}
        return {**wished, **wire, **({"stream": True} if manner.stream else {})}

    def completion(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        items, status, tokens = answer["output"], answer["status"], _tokens(answer.get("usage"))
        if status not in ("completed", "incomplete"):
            error = answer.get("error") or {"message": f"the response is {status}"}
            return {**completed({"content": None}, "error", tokens), "error": error}
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        words = [part["text"] for part in parts if part["type"] == "output_text"]
        refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
        calls = [
            call(item["call_id"], item["name"], item["arguments"]) for item in items if item["type"] == "function_call"
        ]
        finish = "tool_calls" if calls else "stop"
        if status == "incomplete":
            finish = _INCOMPLETE.get((answer.get("incomplete_details") or {}).get("reason", ""), finish)
        message: dict[str, Any] = {"content": "".join(words) if words else None}
        message |= {"refusal": "".join(refusals)} if refusals else {}
        message |= {"tool_calls": calls} if calls else {}
        if thoughts := [item for item in items if item["type"] == "reasoning"]:
            message["reasoning"] = "\n".join(filter(None, map(_thought, thoughts)))
            message |= {} if finish == "length" else {ITEMS: items}
        return completed(message, finish, tokens)

    def assembly(self, longest: int) -> Assembly:
        return ItemAssembly(longest)

    def sends_reasoning(self, body: Mapping[str, Any]) -> bool:
        return "include" in body or any(item.get("type") == "reasoning" for item in body.get("input", ()))


class ItemAssembly(Assembly):
    """A response from the event that ends its stream; from the items before it where that leaves them out."""

    def __init__(self, longest: int):
        super().__init__(longest)
        self._items: dict[int, Any] = {}
        self._answer: dict[str, Any] | None = None

    def add(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind == "response.output_item.done":
            self.held(str(event["item"]))
            self._items[event["output_index"]] = event["item"]
        elif kind in _OVER:
            answer = dict(event["response"])
            answer["output"] = answer.get("output") or [self._items[index] for index in sorted(self._items)]
            self._answer, self.done = answer, True
        elif kind == "error":
            self._answer, self.done = {"error": event, "output": [], "status": "failed"}, True

    def answer(self) -> dict[str, Any] | None:
        return self._answer


def _items(message: Mapping[str, Any]) -> list[Any]:
    """Items of the next request's input that a message is."""
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    calls = [
        {"type": "function_call", "call_id": one["id"], **one["function"]} for one in message.get("tool_calls") or ()
    ]
    if ITEMS in message:
        rest = iter(calls)
        items = [{**item, **next(rest, {})} if item["type"] == "function_call" else item for item in message[ITEMS]]
        return [item for item in items if item["type"] != "reasoning" or _can_return(item)]
    text = message.get("content") or ""
    return [*([{"role": message["role"], "content": text}] if text or not calls else []), *calls]


def _can_return(item: Mapping[str, Any]) -> bool:
    return bool(item.get("encrypted_content") or item.get("content"))


def _thought(item: Mapping[str, Any]) -> str:
    parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
    return "\n".join(part["text"] for part in parts)


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    described = {"strict": False, "parameters": {"type": "object", "properties": {}}, **function}
    return {"type": "function", **described}


def _tokens(reported: Any) -> Any:
    try:
        cached = (reported.get("input_tokens_details") or {}).get("cached_tokens")
        return usage(reported["input_tokens"], reported["output_tokens"], cached)
    except (LookupError, TypeError, AttributeError):
        return None
