"""A server on the loopback address that speaks the chat completions protocol, or misbehaves as endpoints do."""

import json
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

KEY = "sk-not-to-be-seen-anywhere"


def completion(text: Any, prompt: int = 10, reply: int = 3, finish: str = "stop", **message: Any) -> bytes:
    """The body of an answer; further entries are those of its message."""
    choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    usage = {"prompt_tokens": prompt, "completion_tokens": reply}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


def calling(*calls: tuple[str, Any], text: str | None = None, ids: Sequence[str] = (), **more: Any) -> bytes:
    """The body of an answer that calls tools; arguments are text, or what is written as JSON; more is of completion."""
    asked = [
        {
            "id": ids[number] if ids else f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(calls)
    ]
    return completion(text, **{"finish": "tool_calls", **more}, tool_calls=asked)


class Server:
    """Answers request number n with ``script[n]``, the last entry for ever: (status, body, headers), or a function.

    A function is called with the handler; ``reading`` makes one of a function from a request's body to an answer's.
    """

    def __init__(self) -> None:
        self.script: list[Any] = [(200, completion("go north"), {})]
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.busy = self.busiest = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer._lock:
                    number = len(outer.requests)
                    self.asked = json.loads(body)
                    outer.requests.append({"path": self.path, "body": self.asked, "headers": dict(self.headers)})
                    outer.times.append(time.monotonic())
                    outer.busy += 1
                    outer.busiest = max(outer.busiest, outer.busy)
                try:
                    try:
                        answer = outer.script[min(number, len(outer.script) - 1)]
                        status, content, headers = answer(self) if callable(answer) else answer
                    finally:
                        with outer._lock:
                            outer.busy -= 1  # before the answer leaves: whoever has it may ask again at once
                    if status:
                        self.send_response(status)
                        for name, value in {"Content-Length": str(len(content)), **headers}.items():
                            self.send_header(name, value)
                        self.end_headers()
                        self.wfile.write(content)
                except OSError:
                    pass  # the client left

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def encrypt(self, certificate: Path, key: Path) -> None:
        """Take connections with TLS alone from now on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http://", "https://")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def reading(answer: Any) -> Any:
    """An entry of a script that depends on the request."""
    return lambda handler: (200, answer(handler.asked), {})


@pytest.fixture
def endpoint_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server, to which the environment variables lead, with a key that must not be seen."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = Server()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    yield server
    server.close()
