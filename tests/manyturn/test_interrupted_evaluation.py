"""An evaluation that was killed or interrupted must not play again, or pay again, what it had finished."""

import json
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from manyturn.agents.records.episode_rows import read_turns

TURNS = 4
PRICES = (2.0, 8.0)  # for a million tokens of prompts and of replies
ENV = f"""
import manyturn as mt

class Stairs(mt.TextEnv):
    instructions = "Climb."
    max_turns = 9

    def tasks(self, split):
        return [mt.Task(f"{{split}}/{{n}}", split, {{"n": n}}) for n in range(40)]

    def begin(self, task, rng):
        return f"Stair {{task.params['n']}}, step 1."

    def respond(self, action):
        return self.succeed("Up.") if self.turn == {TURNS - 1} else self.go_on(f"Step {{self.turn + 2}}.")
"""


class Meter:
    """An endpoint with its own count of every reply, by the number that the reply names.

    Attributes:
        most: how many requests it answers; later ones wait until there may be more.
    """

    def __init__(self) -> None:
        self.most = 0
        self.counted: list[tuple[int, int]] = []
        self.begun = self.open = self.most_open = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    number = len(outer.counted)
                    usage = (100 + number, 1 + number % 7)
                    outer.counted.append(usage)
                    outer.begun += not any(message["role"] == "assistant" for message in body["messages"])
                with outer._changed:
                    outer._changed.wait_for(lambda: number < outer.most)
                choice = {"message": {"role": "assistant", "content": f"climb {number}"}, "finish_reason": "stop"}
                told = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
                answer = json.dumps({"choices": [choice], "usage": told}).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass  # the client was killed

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, most: int) -> None:
        """Answer so many requests in all."""
        with self._changed:
            self.most = most
            self._changed.notify_all()

    def wait(self, replies: int, open: int, child: subprocess.Popen) -> None:
        """Answer so many requests in all, until so many others have come."""
        self.answer(replies)
        while len(self.counted) < replies + open:
            assert child.poll() is None, child.communicate()
            time.sleep(0.005)

    def close(self) -> None:
        self.answer(2**31)
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def meter() -> Iterator[Meter]:
    server = Meter()
    yield server
    server.close()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("tasks", "repeats", "concurrency"), [(10, 4, 4), pytest.param(17, 20, 16, marks=pytest.mark.slow)]
)
def test_an_evaluation_that_is_killed_and_interrupted_loses_no_more_than_was_open(
    meter, tmp_path, tasks, repeats, concurrency
):
    (tmp_path / "stairs.py").write_text(ENV)
    words = ["evaluate", "openai:toy", "--env", "stairs.py:Stairs", "--limit", tasks, "--repeats", repeats]
    words += ["--out", "found", "--endpoint.base-url", meter.url, "--endpoint.concurrency", concurrency]
    words += ["--agent.format", "free_text", "--endpoint.price-in", PRICES[0], "--endpoint.price-out", PRICES[1]]
    env = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    def start() -> subprocess.Popen:
        command = [sys.executable, "-P", "-m", "manyturn", *map(str, words)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe, text=True)

    episodes = tasks * repeats
    killed = start()
    part = TURNS * episodes // 3 + 2 * concurrency  # in the middle of episodes, all of which go at one pace
    meter.wait(part, concurrency, killed)
    killed.kill()
    killed.communicate()
    kept = (tmp_path / "found" / "episodes.jsonl").read_bytes().count(b"\n") - 1
    assert kept >= episodes // 3 - concurrency, "finished episodes are written as they end"

    interrupted = start()
    meter.wait(2 * part, concurrency, interrupted)
    interrupted.send_signal(signal.SIGINT)
    _, told = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130
    assert f"of {episodes} episodes; found keeps them, and the same command continues" in told

    meter.answer(2**31)
    last = start()
    assert last.wait(timeout=240) == 0, last.communicate()
    assert meter.begun <= episodes + 2 * concurrency, "each interruption costs no more than was open"
    _same_as_the_servers(json.loads((tmp_path / "found" / "summary.json").read_text()), meter, tmp_path / "found")


def _same_as_the_servers(summary: dict[str, Any], meter: Meter, folder: Path) -> None:
    """The figures are the server's for the replies that were kept, and what is called lost was counted too."""
    said = [int(row["reply"].removeprefix("climb ")) for row in read_turns(folder / "turns.parquet")]
    assert len(said) == len(set(said)) == TURNS * summary["n_episodes"]
    tokens, lost = summary["tokens"], summary["lost"]
    for place, name in enumerate(("prompt", "reply")):
        kept = sum(meter.counted[number][place] for number in said)
        everything = sum(usage[place] for usage in meter.counted)
        assert tokens[f"{name}_total"] == kept
        assert 0 <= lost[f"{name}_tokens"] <= everything - kept, "replies that a killed process got are not known"
    assert lost["reply_tokens"] > 0, "what was open at the interruptions had cost something"
    paid = sum(sum(map(operator.mul, meter.counted[number], PRICES)) for number in said) / 1e6
    assert summary["cost"]["total"] == pytest.approx(paid, rel=1e-9)
    assert summary["success"]["mean"] == 1 and summary["errors"]["n"] == 0 and summary["cut_reply_rate"] == 0
