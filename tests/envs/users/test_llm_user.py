"""The model user against a real server: whatever comes back, the turn is an utterance or a UserError, in time."""

import asyncio
import gzip
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle
from manyturn.envs.tools.toolset import Toolset
from manyturn.envs.users.endpoint.llm_client import ModelOptions
from manyturn.envs.users.llm_user import ModelUser
from manyturn.envs.users.protocol import UserError
from manyturn.envs.users.tool_use import spoken

TASK = Task("one", "train", {"x": 1})
Answer = Callable[[BaseHTTPRequestHandler, dict], None]


def completion(text: str | None, finish: str = "stop", **message) -> bytes:
    said = {"role": "assistant", "content": text, **message}
    return json.dumps({"choices": [{"message": said, "finish_reason": finish}]}).encode()


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, length: int | None = None) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, list[dict]]]:
    """An endpoint on loopback: its address, and the requests that it got."""
    asked: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            asked[-1]["authorization"] = self.headers.get("Authorization")
            try:
                answer(self, asked[-1])
            except OSError:
                self.close_connection = True  # the client has gone

        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def user_at(url: str, greeting: str | None = None, **options) -> ModelUser:
    user = ModelUser(
        lambda task: "You want tea.", ModelOptions(model="m", base_url=url, wait=0, **options), greeting=greeting
    )
    if greeting is None:
        user.begin(TASK, generator(0))
    return user


def drip(handler: BaseHTTPRequestHandler, _: dict) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while True:  # until the client hangs up
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.02)


def drip_headers(handler: BaseHTTPRequestHandler, _: dict) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"X-Again: 1\r\n")
        handler.wfile.flush()
        time.sleep(0.02)


def flood(handler: BaseHTTPRequestHandler, _: dict) -> None:
    send(handler, completion("x" * 10_000_000))


def packed(handler: BaseHTTPRequestHandler, _: dict) -> None:
    body = gzip.compress(gzip.compress(b"0" * 50_000_000))  # some kilobytes
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip, gzip")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


FAULTS: dict[str, tuple[Answer, str]] = {
    "500": (lambda h, _: send(h, b"oops", 500), "status 500"),
    "429": (lambda h, _: send(h, b"slow down", 429), "status 429"),
    "garbage": (lambda h, _: send(h, b"\xff\x00<html>"), "not a chat completion"),
    "no choices": (lambda h, _: send(h, b'{"choices": []}'), "not a chat completion"),
    "a list": (lambda h, _: send(h, b"[1]"), "not a chat completion"),
    "deep": (lambda h, _: send(h, b"[" * 100_000), "not a chat completion"),
    "empty": (lambda h, _: send(h, completion("")), "without words"),
    "blank": (lambda h, _: send(h, completion(" \n")), "without words"),
    "null": (lambda h, _: send(h, completion(None)), "without words"),
    "a tool call": (lambda h, _: send(h, completion(None, tool_calls=[{"id": "1"}])), "tool call"),
    "too long": (lambda h, _: send(h, completion("x" * 5000)), "does not end"),
    "cut": (lambda h, _: send(h, completion("I would", "length")), "does not end"),
    "flood": (flood, "longer than"),
    "packed": (packed, "comes as gzip, gzip, though"),
    "broken off": (lambda h, _: send(h, b"{", length=1000), "Error"),
    "slow drip": (drip, "no answer within 0"),
    "slow drip of headers": (drip_headers, "no answer within 0"),
    "silence": (lambda h, _: h.connection.recv(1), "no answer within 0"),
}


@pytest.mark.deep
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_a_user_error_after_the_given_attempts(fault):
    answer, told = FAULTS[fault]
    with serving(answer) as (url, asked):
        user = user_at(url, attempts=2, timeout=1.5 if "no answer" in told else 60)
        with pytest.raises(UserError, match=told) as caught:
            user.hear("Hello.")
        assert len(asked) == 2 and "2 attempts" in str(caught.value) and "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500


def test_a_refusal_is_not_tried_again():
    with serving(lambda h, _: send(h, b"no such model", 404)) as (url, asked), pytest.raises(UserError, match="404"):
        user_at(url, attempts=5).hear("Hello.")
    assert len(asked) == 1


def test_nobody_there_is_a_user_error():
    with pytest.raises(UserError, match="2 attempts"):
        user_at("http://127.0.0.1:9", attempts=2, timeout=2).hear("Hello.")


def test_a_fault_that_passes_costs_an_attempt_and_another_seed():
    answers = iter([b"garbage", completion("Tea, please.")])
    with serving(lambda h, _: send(h, next(answers))) as (url, asked):
        assert user_at(url, seed=7).hear("What do you want?").utterance == "Tea, please."
    assert [request["seed"] for request in asked] == [7, 8]
    assert asked[0]["temperature"] == 0 and asked[0]["messages"] == asked[1]["messages"]


def test_the_model_sees_its_brief_and_the_dialogue_from_its_own_side():
    answers = iter([completion("Hi, tea?"), completion("Green. ###STOP### bye")])
    with serving(lambda h, _: send(h, next(answers))) as (url, asked):
        user = user_at(url, "Hello!")
        assert user.begin(TASK, generator(0)) == "Hi, tea?"
        heard = user.hear("Which?", {"mood": 3, "done": []})
    assert heard.utterance == "Green." and heard.done
    system, *rest = asked[1]["messages"]
    assert "You want tea." in system["content"] and "###STOP###" in system["content"]
    assert [(m["role"], m["content"]) for m in rest] == [
        ("user", "Hello!"), ("assistant", "Hi, tea?"), ("user", "Which?\n(mood: 3)")
    ]  # fmt: skip


def test_a_restored_dialogue_goes_on_with_the_same_messages():
    with serving(lambda h, _: send(h, completion("Yes."))) as (url, asked):
        user, other = user_at(url), user_at(url)
        user.hear("One?")
        other.load(json.loads(json.dumps(user.save())))
        user.hear("Two?")
        other.hear("Two?")
    assert asked[-1] == asked[-2]


def test_the_key_is_sent_and_shown_nowhere(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")

    def repeat(handler: BaseHTTPRequestHandler, request: dict) -> None:
        send(handler, f"bad key {request['authorization']}".encode(), 401)

    with serving(repeat) as (url, asked), pytest.raises(UserError) as caught:
        user_at(url).hear("Hello.")
    assert asked[0]["authorization"] == "Bearer sk-secret-1"
    assert "sk-secret" not in str(caught.value) + str(caught.value.__cause__)


@pytest.mark.parametrize(
    "url", ["", "example.org:80", "ftp://x", "http://u:p@x/v1", "http://x/v1?key=1", "http://[", "http://x:99999"]
)
def test_a_wrong_address_is_told_at_once(url, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ValueError, match="address"):
        ModelUser(str, ModelOptions(model="m", base_url=url))


def test_an_address_on_this_machine_may_leave_out_its_scheme():
    with serving(lambda handler, _: send(handler, completion("Tea, please."))) as (url, _):
        assert user_at(url.removeprefix("http://")).hear("Hello.").utterance == "Tea, please."


def test_in_an_environment_the_error_of_a_user_is_never_a_reward():
    spec = {"kind": "model", "model": "m", "attempts": 1, "timeout": 5}
    broken = [False]

    def answer(handler: BaseHTTPRequestHandler, _: dict) -> None:
        send(
            handler, b"oops" if broken[0] else completion("I want a table at a restaurant."), 500 if broken[0] else 200
        )

    with serving(answer) as (url, _):
        handle = EnvHandle("manyturn/Talk-Booking-v0", {"user": {**spec, "base_url": url}})
        task = handle.tasks("train")[0]
        assert handle.reset(task, 1).observation == "I want a table at a restaurant."
        assert handle.env.unwrapped.user.name == "model(m)"
        broken[0] = True
        with pytest.raises(EnvError, match=r"UserError.*status 500"):
            handle.step("Which day?")
        broken[0] = False
        assert handle.reset(task, 1).reward == 0


# ---- with tools ------------------------------------------------------------------------------------------------------


def press(button: str) -> str:
    """Press a button.

    Args:
        button: which.
    """
    return f"{button} pressed"


BUTTONS = Toolset([press], most_calls=1)


def calling(*arguments: object, name: object = "press", words: str | None = None) -> bytes:
    functions = [{"name": name, "arguments": one} for one in arguments]
    return completion(words, "tool_calls", tool_calls=[{"id": "x", "function": one} for one in functions])


def holder_at(url: str, **options) -> ModelUser:
    options = ModelOptions(model="m", base_url=url, wait=0, **options)
    user = ModelUser(lambda task: "You want tea.", options, greeting=None, tools=BUTTONS.schemas)
    user.begin(TASK, generator(0))
    return user


def test_calls_and_their_results_stand_in_the_next_request():
    answers = iter([calling('{"button": "a"}', '{"button": "b"}', words="I press."), completion("Both are pressed.")])
    with serving(lambda h, _: send(h, next(answers))) as (url, asked):
        user = holder_at(url)
        heard, rounds = spoken(user, user.hear("Press both."), BUTTONS)
    assert heard.utterance == "Both are pressed." and not heard.calls
    assert [one.text for one in rounds[0]] == ["a pressed", "b pressed"]
    assert asked[0]["tools"] == asked[1]["tools"] == [dict(one) for one in BUTTONS.schemas]
    words, *results = asked[1]["messages"][2:]
    assert words["content"] == "I press." and [one["content"] for one in results] == ["a pressed", "b pressed"]
    ids = [call["id"] for call in words["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in results] and len(set(ids)) == 2
    assert [json.loads(call["function"]["arguments"]) for call in words["tool_calls"]] == [
        {"button": "a"},
        {"button": "b"},
    ]


ARGUMENTS = ["{", "[]", "3", '{"button": 1}', '{"button": "a"}}', '{"button": NaN}', '{"button": "a", "button": "b"}']
ARGUMENTS += ['{}, "name": "x"', '{}, "arguments": {"button": "a"}', "[" * 5000, '{"n": ' * 500 + "1" + "}" * 500]


@pytest.mark.parametrize("arguments", [*ARGUMENTS, 3, [1], {"nut": "a"}])
def test_malformed_arguments_are_answered_and_not_sent_back(arguments):
    answers = iter([calling(arguments), completion("I cannot.")])
    with serving(lambda h, _: send(h, next(answers))) as (url, asked):
        user = holder_at(url)
        heard, ((answered,),) = spoken(user, user.hear("Press a."), BUTTONS)
    assert answered.text.startswith("Error: ") and not answered.valid and heard.utterance == "I cannot."
    (call,) = asked[1]["messages"][2]["tool_calls"]
    assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert asked[1]["messages"][3] == {"role": "tool", "tool_call_id": call["id"], "content": answered.text}


@pytest.mark.parametrize("arguments", ['{"button": "a"}', {"button": "a"}])
def test_arguments_are_text_or_an_object(arguments):
    with serving(lambda h, _: send(h, calling(arguments))) as (url, _):
        (call,) = holder_at(url).hear("Press a.").calls
    assert BUTTONS.answer(call).text == "a pressed"


def test_no_text_of_a_call_or_a_result_breaks_the_dialogue():
    answers: list[bytes] = []
    with serving(lambda h, _: send(h, answers.pop(0))) as (url, asked):
        user = holder_at(url)

        @settings(max_examples=25, deadline=None)
        @given(st.text(max_size=30), st.text(max_size=30))
        def holds(arguments: str, result: str) -> None:
            answers[:] = [calling(arguments), completion("Well.")]
            user.begin(TASK, generator(0))
            (call,) = user.hear("Press.").calls
            BUTTONS.answer(call)
            assert user.see([result + "\ud800"]).utterance == "Well."
            assert asked[-1]["messages"][-1]["content"] == result + "?"

        holds()


@pytest.mark.parametrize(
    "message",
    [
        calling("{}", name=""),
        calling("{}", name="a b"),
        calling("{}", name=3),
        calling("{}", name="x" * 65),
        completion(None, tool_calls=[{}]),
        completion(None, tool_calls={"function": 1}),
        completion(None, tool_calls=3),
        completion(None, tool_calls=[]),
    ],
)
def test_what_is_no_tool_call_of_the_protocol_is_a_user_error(message):
    with serving(lambda h, _: send(h, message)) as (url, asked), pytest.raises(UserError, match="2 attempts"):
        holder_at(url, attempts=2).hear("Press a.")
    assert len(asked) == 2


def test_the_calls_of_a_turn_share_its_time():
    def slow(handler: BaseHTTPRequestHandler, _: dict) -> None:
        time.sleep(0.1)
        send(handler, calling('{"button": "a"}'))

    with serving(slow) as (url, asked):
        user = holder_at(url, timeout=0.5, attempts=1)
        with pytest.raises(UserError, match="no answer within"):
            spoken(user, user.hear("Press a."), BUTTONS)
        assert len(asked) < 8


def test_a_dialogue_with_calls_goes_on_where_it_was_restored():
    def answer(handler: BaseHTTPRequestHandler, request: dict) -> None:
        send(handler, completion("Well.") if request["messages"][-1]["role"] == "tool" else calling("{}"))

    with serving(answer) as (url, asked):
        user, other = holder_at(url), holder_at(url)
        spoken(user, user.hear("One?"), BUTTONS)
        other.load(json.loads(json.dumps(user.save())))
        for one in (user, other):
            spoken(one, one.hear("Two?"), BUTTONS)
    assert asked[-1] == asked[-3] and len(asked) == 6


def test_a_stopped_event_loop_is_warned_of_and_a_worker_is_not():
    async def inside(user: ModelUser) -> str:
        return user.hear("Hello.").utterance

    with serving(lambda h, _: send(h, completion("Yes."))) as (url, _):
        with pytest.warns(RuntimeWarning, match="worker processes"):
            assert asyncio.run(inside(user_at(url))) == "Yes."
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert user_at(url).hear("Hello.").utterance == "Yes."
