"""A server that speaks chat completions and opens doors in order; it counts what it is asked and what it says."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_WORD = re.compile(r"\S+|\s+")


class ChatServer:
    """Settings may change while it runs.

    Attributes:
        status: of every answer, or that of request number n (from 0) as a function of n.
        thought: what stands before each reply, in tags of thinking.
        seconds: that an answer takes.
        prompts, replies: tokens of all answers with status 200, as their ``usage`` says; a token is a word or a blank.
        asked: bodies of all requests.
        statuses: how often each was answered.
    """

    def __init__(self, port: int):
        self.status: Any = 200
        self.thought = ""
        self.tags = ("", "")
        self.seconds = 0.0
        self.body: bytes | None = None
        self.prompts = self.replies = 0
        self.asked: list[dict[str, Any]] = []
        self.statuses: Counter[int] = Counter()
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self._lock = threading.Lock()

    def answer(self, body: dict[str, Any]) -> tuple[int, bytes]:
        with self._lock:
            number = len(self.asked)
            self.asked.append(body)
            status = self.status(number) if callable(self.status) else self.status
            self.statuses[status] += 1
        time.sleep(self.seconds)
        if status != 200:
            return status, json.dumps({"error": {"message": f"this is status {status}"}}).encode()
        return status, self.body or json.dumps(self.completion(body)).encode()

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a model would say that knows the game, cut where the request wants it."""
        said = self.tags[0] + move(body["messages"]) + self.tags[1]
        words = _WORD.findall(f"<think>{self.thought}</think>{said}" if self.thought else said)
        longest = body.get("max_completion_tokens", body.get("max_tokens", 10**9))
        prompt = sum(len(_WORD.findall(message["content"])) for message in body["messages"])
        reply = min(len(words), longest)
        with self._lock:
            self.prompts += prompt
            self.replies += reply
        message = {"role": "assistant", "content": "".join(words[:longest])}
        reason = "length" if len(words) > longest else "stop"
        usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
        return {"choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage}


def move(messages: list[dict[str, str]]) -> str:
    """The next door of the order, which stands in what was read last of it."""
    order = next(found for m in messages if (found := re.search(r"Order: ([\w, ]+)\.", m["content"])))
    opened = sum("It opens." in message["content"] for message in messages if message["role"] == "user")
    return f"open {order[1].split(', ')[opened]}"


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """One on a free port of the loopback address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = server.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = ChatServer(listening.server_port)
    threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
