"""``ors:URL``: another episode than the server's, calls played twice, faults of the wire as rewards."""

import contextlib
import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

import manyturn as mt
from manyturn.envs.contract.registration.env_registry import NeedsSetup, OutsideLost
from manyturn.envs.openenv.faults import BadAnswer, ServerRaised

if any(find_spec(name) is None for name in ("uvicorn", "wsproto")):
    pytest.skip("no server: pip install 'manyturn[serve]'", allow_module_level=True)

from gymnasium.error import ResetNeeded
from served import FAULTY, process, transcript  # pyright: ignore[reportMissingImports]

pytestmark = pytest.mark.versions

TOKEN = "0123456789abcdef-a-token"
TOOL = {"name": "guess", "description": "Guess.", "input_schema": {"type": "object", "properties": {"n": {}}}}


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Maze")])
def test_our_own_server_plays_the_episode_of_the_environment(env):
    with process(env, "ors", "--workers", "1") as (url, _):
        served = mt.make(f"ors:{url}", seed_entry="seed", text_tool="act")
        task = served.unwrapped.tasks("train")[2]
        turns = transcript(env, 3, garbage=1, task=task.params["task"])
        text, _ = served.reset(seed=3, options={"task": task})
        assert text.endswith(turns[0].text) and ("<tools>" in served.unwrapped.instructions) == (
            env == "manyturn/Desk-v0"
        )
        for turn in turns[1:]:
            text, reward, terminated, truncated, info = served.step(turn.action)
            assert (text, reward, truncated, terminated or truncated) == (
                turn.text,
                turn.reward,
                turn.truncated,
                turn.ended,
            )
            assert info["reward_parts"] == turn.parts
        assert info["success"] is True
        with pytest.raises(ResetNeeded):
            served.step("more")
        served.close()


def test_an_error_of_the_environment_is_an_error_here_and_a_token_is_sent(monkeypatch):
    monkeypatch.setenv("OPENREWARD_API_KEY", TOKEN)
    with process(FAULTY, "ors", "--workers", "1", "--token", TOKEN) as (url, _):
        served = mt.make(f"ors:{url}")
        for action, error in (("raise", ServerRaised), ("die", OutsideLost)):
            served.reset(seed=1)
            with pytest.raises(error):
                served.step(action)
            with pytest.raises(ResetNeeded):
                served.step("more")
        served.reset(seed=1)
        assert served.step("win")[1:3] == (1.0, True)
        monkeypatch.setenv("OPENREWARD_API_KEY", "wrong")
        with pytest.raises(NeedsSetup, match="OPENREWARD_API_KEY"):
            mt.make(f"ors:{url}")


def event(kind: str, data: Any) -> str:
    return f"event: {kind}\r\ndata: {data if isinstance(data, str) else json.dumps(data)}\r\n\r\n"


def output(text: str, reward: float | None = None, **more: Any) -> dict[str, Any]:
    return {
        "ok": True,
        "output": {"blocks": [{"type": "text", "text": text}], "reward": reward, "finished": False, **more},
    }


@contextlib.contextmanager
def scripted(
    *calls: Any, terminal: Any = None, create: tuple[int, ...] = (200,), sid: str = "sid-1", tasks: int = 3
) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers each request for a call with the next of these, a text of events as it is.

    Its answer to the end of a session has no end.
    """
    left, asked, created = iter(calls), list[Any](), iter(create)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tools = {"tools": [TOOL], "terminal_tool": terminal}
            blocks = [{"type": "text", "text": "Guess."}, {"type": "image", "mimeType": "image/png", "data": ""}]
            known = {
                "/list_environments": ["one"],
                "/one/tools": tools,
                "/one/task_tools": tools,
                "/one/prompt": blocks,
            }
            known |= {"/one/splits": [{"name": "train", "type": "train"}], "/version": {"version": "1"}}
            self.say(200 if self.path in known else 404, json.dumps(known.get(self.path)))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"null")
            if self.path == "/one/num_tasks":
                self.say(200, f'{{"num_tasks": {tasks}}}')
            elif self.path == "/one/task_range":
                self.say(200, json.dumps({"tasks": [{"secret": n} for n in range(3)]}))
            elif self.path == "/create_session":
                self.say(200, event("task_id", sid) + event("end", ""))
            elif self.path == "/create":
                asked.append((self.headers["X-Session-ID"], body))
                self.say(next(created, 200), '{"sid": "sid-1"}')
            elif self.path == "/one/call":
                asked.append(body)
                answer = next(left)
                plain = isinstance(answer, str)
                self.say(200, answer if plain else event("task_id", "t") + ": ping\n\n" + event("end", answer))
            else:
                self.send_response(200)
                self.end_headers()
                with contextlib.suppress(OSError):
                    while True:
                        self.wfile.write(b"x" * 2**16)

        def say(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("X-Backend-State", "starting" if status == 503 else "up")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"ors:127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def call(n: int) -> str:
    return json.dumps({"name": "guess", "arguments": {"n": n}})


def test_rewards_of_several_calls_add_up_and_mistakes_earn_nothing():
    over = output("Yes.", 1.0, finished=True)
    mistake = {"ok": False, "error": "no tool", "reason": "not_found"}
    with scripted(output("No.", 0.25), output("No.", 0.5), mistake, over) as (url, asked):
        env = mt.make(url)
        text, _ = env.reset(seed=1, options={"task": "train/1"})
        assert text.startswith("Guess.\n(image/png") and "secret" not in text
        assert asked == [("sid-1", {"env_name": "one", "split": "train", "index": 1})]
        assert env.step(f"[{call(1)}, {call(2)}]")[:3] == ("No.\nNo.", 0.75, False)
        text, reward, _, _, info = env.step(call(3))
        assert (text, reward, info["understood"]) == ("Error: no tool", 0.0, False)
        assert env.step("I say four")[4]["format_valid"] is False and len(asked) == 4
        assert env.step(f"[{call(4)}, {call(5)}]")[:3] == ("Yes.", 1.0, True) and len(asked) == 5


def test_a_call_whose_answer_is_lost_is_asked_for_again_and_not_played_twice():
    half = event("task_id", "t") + 'event: chunk\r\ndata: {"ok"'
    with scripted(half, output("No.", 0.5)) as (url, asked):
        env = mt.make(url)
        env.reset(seed=1)
        assert env.step(call(1))[:2] == ("No.", 0.5)
        assert [one.get("task_id") for one in asked[1:]] == [None, "t"]


def test_words_go_to_the_terminal_tool_and_a_server_that_starts_is_waited_for():
    terminal = {"name": "submit", "arg": "answer"}
    with scripted(output("Done.", finished=True), terminal=terminal, create=(503, 200)) as (url, asked):
        env = mt.make(url)
        env.reset(seed=1)
        text, reward, terminated, _, _ = env.step("forty-two")
        assert (text, terminated) == ("Done.", True) and math.isnan(reward), "it never paid, so it is not scored"
        assert asked[-1] == {"name": "submit", "input": {"answer": "forty-two"}} and len(asked) == 3


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("", OutsideLost),
        (event("task_id", "t") + event("error", "ValueError: broken"), ServerRaised),
        (event("error", "unknown task_id"), ServerRaised),
        (event("task_id", "t") + event("end", "{"), BadAnswer),
        (event("task_id", "t") + event("end", "[]"), BadAnswer),
        ({"ok": False, "error": "over", "reason": "episode_finished"}, BadAnswer),
        ({"ok": True}, BadAnswer),
        (output("x", "1"), BadAnswer),
        (output("x", finished=None), BadAnswer),
        ({"ok": True, "output": {"blocks": "x", "finished": False}}, BadAnswer),
    ],
    ids=str,
)
def test_an_answer_that_is_none_ends_the_episode_and_is_no_reward(answer, error):
    with scripted(answer) as (url, _):
        env = mt.make(url)
        env.reset(seed=1)
        with pytest.raises(error):
            env.step(call(1))
        with pytest.raises(ResetNeeded):
            env.step(call(1))


@pytest.mark.parametrize("broken", [{"sid": ""}, {"sid": "\u2028"}, {"sid": "x" * 300}, {"tasks": 10**400}], ids=str)
def test_a_server_that_names_no_session_or_counts_without_end_gives_a_bad_answer(broken):
    with scripted(**broken) as (url, _), pytest.raises(BadAnswer):
        mt.make(url).reset(seed=1)


def test_names_and_options_that_cannot_be_right_are_refused(command):
    with scripted() as (url, _):
        for args in ({"text_tool": "say"}, {"timeout": 0}, {"sessions": 0}):
            with pytest.raises(ValueError, match=next(iter(args))):
                mt.make(url, **args)
        ended = command("evaluate", "random", "--env", "ors:http://user:hidden@127.0.0.1:1")
        assert ended.code == 2 and "OPENREWARD_API_KEY" in ended.err and "hidden" not in ended.err
    assert command("evaluate", "random", "--env", url).code == 2
