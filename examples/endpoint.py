"""Evaluate a model at an endpoint that speaks the chat completions protocol.

    python examples/endpoint.py                     # a server of this file, which knows one trick
    python examples/endpoint.py URL MODEL           # yours; OPENAI_API_KEY is its key

On the command line that is ``manyturn evaluate openai:MODEL --env manyturn/Maze-v0`` (docs/endpoints.md).
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import manyturn as mt


def reply(messages: list[dict[str, str]]) -> str:
    """Take what lies here, else unlock, else go on; the action stands between tags, as the system message asks."""
    commands = messages[-1]["content"].partition("Admissible commands: ")[2].split("; ")
    best = min(commands, key=lambda command: ("take", "unlock", "go").index(command.split()[0]))
    return f"<action>{best}</action>"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": reply(request["messages"])}
        usage = {"prompt_tokens": len(json.dumps(request["messages"])) // 4, "completion_tokens": 8}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Keep quiet."""


@contextmanager
def served() -> Iterator[str]:
    """The address of a server on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def evaluate(url: str, model: str, limit: int, out: str | None):
    result = mt.evaluate(
        f"openai:{model}",
        "manyturn/Maze-v0",
        limit=limit,
        out=out,
        endpoint={"base_url": url, "concurrency": 8},
        agent={"show_admissible": True},
        sampling={"max_tokens": 256},
    )
    result.show()
    return result


def main(url: str | None = None, model: str = "one-trick", limit: int = 24, out: str | None = None):
    if url is not None:
        return evaluate(url, model, limit, out)
    with served() as here:
        return evaluate(here, model, limit, out)


if __name__ == "__main__":
    main(*sys.argv[1:3])
