"""Chat completions, as OpenAI and most servers of models speak them."""

import re
from collections.abc import Mapping
from typing import Any

from manyturn.envs.users.endpoint.protocols.event_stream import Assembly
from manyturn.envs.users.endpoint.protocols.protocol import REASONING, EndpointProtocol, completed
from manyturn.envs.users.endpoint.protocols.service import Manner

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning", "thinking")
_LISTS = ("reasoning_details", "thinking_blocks")
_GROWING = ("text", "summary", "data", "thinking")  # entries of a piece of reasoning that come bit by bit


class ChatCompletions(EndpointProtocol):
    """The protocol in which everything here is written."""

    title, reply, path = "chat completions", "a chat completion", "/chat/completions"
    on_reasoning = re.compile("|".join(REASONING))

    def request(self, body: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
        return {**body, **({"stream": True, "stream_options": {"include_usage": True}} if manner.stream else {})}

    def completion(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        return answer

    def read(self, raw: bytes) -> bytes:
        return raw

    def assembly(self, longest: int) -> Assembly:
        return ChunkAssembly(longest)

    def sends_reasoning(self, body: Mapping[str, Any]) -> bool:
        return any(name in message for message in body.get("messages", ()) for name in REASONING)


class ChunkAssembly(Assembly):
    """A chat completion from its chunks. It has ended once a chunk says why, or the stream says that it is over."""

    def __init__(self, longest: int):
        super().__init__(longest)
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._finish: str | None = None
        self._usage: Any = None
        self._error: Any = None
        self._begun = False

    def add(self, event: dict[str, Any]) -> None:
        self._usage = event.get("usage") or self._usage
        self._error = event.get("error") or self._error
        for choice in event.get("choices") or ():
            if choice.get("index") or 0:
                continue
            self._begun = True
            self._grow(choice.get("delta") or choice.get("message") or {})
            self._finish = choice.get("finish_reason") or self._finish

    def answer(self) -> dict[str, Any] | None:
        over = self._finish is not None or (self.done and self._begun)
        if self._error:
            return {"error": self._error, "usage": self._usage}
        if not over:
            return None
        calls = {"tool_calls": self._calls} if self._calls else {}
        # The words of a refusal have an entry of their own; a stream begins those of a reply with an empty piece.
        refused = {"content": None} if self._message.get("refusal") and not self._message.get("content") else {}
        message = {"content": None, **self._message, **refused, **calls}
        return completed(message, self._finish, self._usage)

    def _grow(self, delta: Mapping[str, Any]) -> None:
        for name in _TEXTS:
            if isinstance(piece := delta.get(name), str):
                self._message[name] = (self._message.get(name) or "") + self.held(piece)
        for name in _LISTS:
            for piece in delta.get(name) or ():
                self.held(str(piece))
                _joined(self._message.setdefault(name, []), piece)
        for piece in delta.get("tool_calls") or ():
            self._call(piece)

    def _call(self, piece: Mapping[str, Any]) -> None:
        """A piece of a call; some servers leave its index out, and begin a call with its id."""
        calls, function = self._calls, piece.get("function") or {}
        begins = bool(piece.get("id")) and all(piece["id"] != call["id"] for call in calls)
        index = piece.get("index", len(calls) if begins or not calls else len(calls) - 1)
        if not 0 <= index <= len(calls):
            raise ValueError("a piece of a call that has not begun")
        if index == len(calls):
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call = calls[index]
        call["id"] = call["id"] or piece.get("id") or ""
        call["function"]["name"] = call["function"]["name"] or self.held(function.get("name") or "")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call["function"]["arguments"] += self.held(arguments)
        elif arguments is not None:
            self.held(str(arguments))
            call["function"]["arguments"] = arguments


def _joined(pieces: list[Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of reasoning; one that goes on the last one becomes part of it."""
    last = pieces[-1] if pieces else {}
    if "index" not in piece or (last.get("index"), last.get("type")) != (piece["index"], piece.get("type")):
        pieces.append(dict(piece))
        return
    for name, value in piece.items():
        if name in _GROWING and isinstance(value, str):
            last[name] = (last.get(name) or "") + value
        elif value is not None:
            last[name] = value
