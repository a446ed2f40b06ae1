"""A service desk whose customer is played by a language model at an endpoint that speaks chat completions.

    python examples/desk_with_model_user.py                     # a server of this file, which plays a simple customer
    python examples/desk_with_model_user.py URL MODEL           # yours; OPENAI_API_KEY is its key
    python examples/desk_with_model_user.py URL MODEL FILE.py:POLICY

The agent has tools, and rules of the desk to keep to; here it is the expert. What the customer says is recorded and
played again without the model, which has to give the same result. docs/users.md has the same on the command line.
"""

import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import manyturn as mt


def customer(messages: list[dict[str, str]]) -> str:
    """Says all that it wants and knows to any question, and leaves when it has what it wants.

    The system message says who the customer is. In the customer's chat the desk's agent has the role ``user``.
    """
    request = messages[0]["content"].partition("know: ")[2]
    heard = " ".join(message["content"] for message in messages if message["role"] == "user")
    figure = re.search(r"Tell the ([^.]+)\.", request)
    complete = figure is None or f"The {figure[1]} is" in heard
    return "###STOP###" if complete and "Is there anything else?" in heard else request


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": customer(request["messages"])}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *words):
        """Keep quiet."""


@contextmanager
def served() -> Iterator[str]:
    """The address of a server on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def play(policy: str, user: dict, limit: int, out: Path):
    """Evaluate with one kind of user. A model user needs workers: it stops its process while it waits."""
    result = mt.evaluate(policy, "manyturn/Desk-v0", env_args={"user": user}, limit=limit, workers=2, out=out)
    result.show()
    return result


def main(url=None, model="simple", policy="expert", *, limit: int = 8, out: str = "runs/desk-with-model-user"):
    recording = Path(out) / "recording.jsonl"
    recording.parent.mkdir(parents=True, exist_ok=True)
    if url is None:
        with served() as here:
            return main(here, model, policy, limit=limit, out=out)
    live = play(
        policy, {"kind": "model", "model": model, "base_url": url, "record": str(recording)}, limit, Path(out) / "live"
    )
    return live, play(policy, {"kind": "replay", "file": str(recording)}, limit, Path(out) / "replayed")


if __name__ == "__main__":
    main(*sys.argv[1:4])
