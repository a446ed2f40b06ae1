"""An endpoint on loopback for environments that ask a model."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[dict[str, Any]], bytes]], str]]:
    """Serves a function from requests to answers, as an OpenAI-compatible endpoint; gives its address."""
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(reply: Callable[[dict[str, Any]], bytes]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                with suppress(OSError):  # the client may have gone
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Silence."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server, thread in running:
        server.shutdown()
        server.server_close()
        thread.join()
