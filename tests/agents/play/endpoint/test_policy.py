"""The endpoint policy against a real server on the loopback address that misbehaves in the ways endpoints do."""

import asyncio
import contextlib
import gzip
import time
import tracemalloc
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from needs_endpoint import KEY, Server, completion

from manyturn.agents.engine.engine import EngineError, EngineRefused
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.endpoint.completion import Completion
from manyturn.agents.play.endpoint.options import Endpoint, EndpointSampling
from manyturn.agents.play.endpoint.policy import EndpointRequest, OpenAIPolicy
from manyturn.agents.play.endpoint.retries import EndpointError
from manyturn.agents.play.endpoint.token_counts import TokenCount
from manyturn.agents.play.episode import ContextFull, Ending, Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import open_seats

pytestmark = pytest.mark.versions

EPISODE = EpisodeKey(0, "evaluate", "test/1", 0)


@pytest.fixture
def server(endpoint_server: Server) -> Server:
    return endpoint_server


def policy(config: AgentConfig | None = None, **endpoint: Any) -> OpenAIPolicy:
    settings = Endpoint(**{"attempts": 3, "first_wait": 0.01, "timeout": 5, **endpoint})
    return OpenAIPolicy(
        "some-model", config or AgentConfig(), EndpointSampling(temperature=0.5, max_tokens=20), settings
    )


def answered(server: Server, **endpoint: Any) -> OpenAIPolicy:
    """A policy whose endpoint has answered once, so that it is known to be there."""
    known = policy(**endpoint)
    script, server.script = server.script, [(200, completion("hello"), {})]
    ask(known)
    server.script = script
    server.requests.clear()
    server.times.clear()
    return known


def ask(policy: OpenAIPolicy) -> Completion:
    return asyncio.run(policy.complete(EndpointRequest([{"role": "user", "content": "look"}]), EPISODE, 0))


def drop(handler: BaseHTTPRequestHandler) -> tuple[int, bytes, dict[str, str]]:
    handler.connection.close()
    return 0, b"", {}


def breaks_off(handler: BaseHTTPRequestHandler) -> tuple[int, bytes, dict[str, str]]:
    return 200, completion("go")[:30], {"Content-Length": "5000", "Connection": "close"}


def slow(seconds: float) -> Callable[[BaseHTTPRequestHandler], tuple[int, bytes, dict[str, str]]]:
    def answer(handler: BaseHTTPRequestHandler) -> tuple[int, bytes, dict[str, str]]:
        time.sleep(seconds)
        return 200, completion("late"), {}

    return answer


# ---- one request --------------------------------------------------------------------------------------------


def test_a_request_says_what_the_endpoint_needs_to_know(server):
    assert ask(policy()) == Completion("go north", (), False, TokenCount(10, 3), TokenCount(10, 3), finish="stop")
    (request,) = server.requests
    assert request["path"] == "/v1/chat/completions"
    assert request["headers"]["Authorization"] == f"Bearer {KEY}"
    body = request["body"]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("some-model", 0.5, 20)
    assert body["messages"] == [{"role": "user", "content": "look"}]
    assert body["seed"] == EPISODE.noise_seed(0) % 2**31


def test_the_seed_differs_by_turn_and_member_and_not_by_attempt(server):
    server.script = [(503, b"", {}), (200, completion("a"), {})]
    asked = policy()
    ask(asked)
    asyncio.run(asked.complete(EndpointRequest([{"role": "user", "content": "x"}]), EPISODE, 1))
    asyncio.run(asked.complete(EndpointRequest([{"role": "user", "content": "x"}]), EPISODE._replace(member=1), 0))
    seeds = [request["body"]["seed"] for request in server.requests]
    assert seeds[0] == seeds[1] and len(set(seeds)) == 3


@pytest.mark.parametrize(
    "fault",
    [
        (429, b'{"error": "slow down"}', {"Retry-After": "0.05"}),
        (500, b"oops", {}),
        (503, b"", {"Retry-After": "nonsense"}),
        (200, b"not json", {}),
        (200, b'{"error": {"message": "overloaded"}}', {}),
        (200, b'{"choices": []}', {}),
        (200, b'{"choices": null}', {}),
        (200, b"[" * 100_000, {}),
        (200, b"null", {}),
        (200, b'"\xff\xfe"', {}),
        (200, completion(None, finish="tool_calls"), {}),
        (200, completion(["part"]), {}),
        (200, completion("half a rep", finish="error"), {}),
        (200, completion("half a rep").replace(b'"usage"', b'"error": {"code": 502}, "usage"'), {}),
        (200, b'{"choices": "none", "usage": 3}', {}),
        (200, b'{"choices": [["message"]]}', {}),
        (200, b'{"choices": [{"message": "go"}]}', {}),
        (200, b'{"choices": [{"message": {"content": %s}}]}' % (b"9" * 5000), {}),
        (200, b"\x1f\x8b broken", {"Content-Encoding": "gzip"}),
        (307, b"", {"Location": "http:no address"}),
        (429, b"", {"Retry-After": "Mon, 01 Jan 2024 00:00:00 +99999999999"}),
        (503, b"", {"Retry-After": "9" * 5000}),
        (200, completion("x" * 10_000_000), {}),
        drop,
        breaks_off,
    ],
    ids=lambda fault: getattr(fault, "__name__", None) or f"{fault[0]}-{fault[1][:24]!r}",
)
def test_a_fault_that_passes_is_tried_again_and_one_that_stays_is_an_engine_error(server, fault):
    server.script = [fault, (200, completion("take key"), {})]
    asked = policy()
    assert ask(asked).text == "take key"
    assert len(server.requests) == 2
    server.script = [fault]
    with pytest.raises(EngineError, match=r"127\.0\.0\.1.*\(3 attempts\)"):
        ask(asked)
    assert len(server.requests) == 5


def test_an_answer_that_comes_too_late_or_in_drips_is_given_up(server):
    def silent(handler: BaseHTTPRequestHandler) -> tuple[int, bytes, dict[str, str]]:
        handler.connection.recv(1)  # nothing comes, until the client hangs up
        return 0, b"", {}

    def drips(handler: BaseHTTPRequestHandler) -> tuple[int, bytes, dict[str, str]]:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(b" ")
                time.sleep(0.05)
        return 0, b"", {}

    for fault in (silent, drips):
        server.script = [fault]
        known = answered(server, timeout=0.5, attempts=2)
        with pytest.raises(EngineError, match="no answer within"):
            ask(known)


def damaged(seed: int) -> Callable[[BaseHTTPRequestHandler], tuple[int, bytes, dict[str, str]]]:
    """A sound answer, bytes of whose head and body were changed, lost or put in."""
    pieces = [
        b"\r\n",
        b"\0",
        b"\xff",
        b"[[[[",
        b"9" * 5000,
        b"Content-Length: -1\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ]
    pieces += [b"Location: http:x\r\n", b"Content-Encoding: gzip\r\n", b"Content-Type: ;charset=\xff\r\n", b'"\\ud800"']

    def answer(handler: BaseHTTPRequestHandler) -> tuple[int, bytes, dict[str, str]]:
        rng = generator("damaged answer", seed)
        status = rng.choice([200, 200, 307, 429, 101])
        body = completion("go north")
        raw = bytearray(b"HTTP/1.1 %d X\r\nRetry-After: 0\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        for place in rng.integers(len(raw) - 20, size=int(rng.integers(4))).tolist():
            kind, start = rng.integers(3), raw.find(b"\r\n") + 2
            if kind == 0:
                raw[start:start] = pieces[int(rng.integers(len(pieces)))]
            elif kind == 1:
                raw[place : place + int(rng.integers(20))] = b""
            else:
                raw[place] = int(rng.integers(256))
        handler.wfile.write(raw)
        handler.close_connection = True
        return 0, b"", {}

    return answer


def test_an_answer_damaged_in_any_place_is_text_or_an_engine_error(server):
    server.script = [damaged(seed) for seed in range(150)]
    asked, texts = answered(server, attempts=1, timeout=1), 0
    for _ in server.script:
        try:
            ask(asked).text.encode()
            texts += 1
        except (EngineError, ContextFull) as error:
            assert str(error).isprintable()
    assert 10 < texts < 140, "some answers should be damaged and some sound"


def test_nobody_at_the_address_is_an_engine_error(server):
    left = answered(server)
    server.close()
    with pytest.raises(EngineError, match=r"ConnectError.*\(3 attempts\)"):
        ask(left)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 301])
def test_a_refusal_is_not_tried_again_and_never_shows_the_key(server, status):
    server.script = [(status, f'{{"error": "bad key {KEY}"}}'.encode(), {"Location": "http://127.0.0.1:1/"})]
    known = answered(server)
    with pytest.raises(EngineRefused, match=f"status {status}") as caught:
        ask(known)
    assert len(server.requests) == 1
    assert KEY not in str(caught.value) and KEY not in repr(caught.value.__cause__)


def test_the_key_is_shown_nowhere(server, caplog):
    caplog.set_level("DEBUG")
    server.script = [(500, KEY.encode(), {})]
    asked = policy()
    with pytest.raises(EndpointError) as caught:
        ask(asked)
    assert KEY not in f"{caught.value} {asked} {asked.endpoint} {caplog.text}"


def test_values_of_headers_are_shown_nowhere(server, caplog):
    caplog.set_level("DEBUG")
    server.script = [lambda handler: (403, handler.headers["X-Api-Key"].encode(), {})]
    asked = policy(headers={"x-api-key": "hidden-header"})
    with pytest.raises(EndpointError) as caught:
        ask(asked)
    assert "***" in str(caught.value)
    assert "hidden" not in f"{caught.value} {asked.endpoint} {asked.endpoint.model_dump(mode='json')} {caplog.text}"


def test_a_key_that_is_cut_in_two_is_not_shown_either(server):
    for before in range(300 - len(KEY), 300, 3):
        server.script = [(403, b"x" * before + KEY.encode(), {})]
        with pytest.raises(EndpointError) as caught:
            ask(policy())
        assert KEY[:4] not in str(caught.value)


def test_an_endpoint_that_finds_the_prompt_too_long_truncates_the_episode(server):
    server.script = [(400, b'{"error": {"code": "context_length_exceeded"}}', {})]
    with pytest.raises(ContextFull, match="context_length_exceeded"):
        ask(policy())


def test_waits_grow_differ_between_episodes_and_honour_what_the_endpoint_asks(server):
    server.script = [(429, b"", {"Retry-After": "0.3"}), (500, b"", {}), (200, completion("a"), {})]
    ask(policy(first_wait=0.1, longest_wait=5))
    first, second = (later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False))
    assert first >= 0.3 and second >= 0.1
    server.script = [(429, b"", {"Retry-After": "3600"}), (200, completion("a"), {})]
    server.requests.clear()
    ask(policy(longest_wait=0.05))


def test_no_more_requests_are_under_way_than_allowed(server):
    server.script = [slow(0.1)]
    limited = policy(concurrency=3)

    async def many() -> None:
        keys = [EPISODE._replace(member=m) for m in range(10)]
        await asyncio.gather(
            *(limited.complete(EndpointRequest([{"role": "user", "content": "x"}]), key, 0) for key in keys)
        )

    asyncio.run(many())
    assert server.busiest == 3


def test_text_that_no_encoding_takes_is_repaired_in_both_directions(server):
    server.script = [(200, b'{"choices": [{"message": {"content": "a\\ud800b"}}]}', {})]
    player = policy().player(EPISODE, "")
    act = asyncio.run(player.act(Answer("x\ud800"), None))  # type: ignore[arg-type]  # the seat is the expert's
    assert (act.reply, act.usage) == ("a\ufffdb", Usage())
    assert server.requests[0]["body"]["messages"][0]["content"] == "x\ufffd"


def test_settings_that_cannot_work_are_refused_at_once(server, monkeypatch):
    for url in ("ftp://x/v1", "no address", "http://"):
        with pytest.raises(ValueError, match="OPENAI_BASE_URL"):
            policy(base_url=url)
    for url in ("http://user:hidden@127.0.0.1/v1", "http://127.0.0.1/v1?key=hidden"):
        with pytest.raises(ValueError, match="no secrets") as caught:
            policy(base_url=url)
        assert "hidden" not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\nX-Evil: 1")
    with pytest.raises(ValueError, match="characters") as caught:
        policy(base_url=server.url)
    assert "Evil" not in str(caught.value)
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(ValueError, match="OPENAI_BASE_URL"):
        policy()


# ---- whole episodes -----------------------------------------------------------------------------------------


def play(policy: OpenAIPolicy, episodes: int = 2, max_turns: int = 4) -> list[Episode]:
    async def run() -> list[Episode]:
        async with open_seats("manyturn/Maze-v0", limit=episodes) as seats:
            tasks = seats.tasks("test")[:episodes]
            plan = [(task, EpisodeKey(0, "evaluate", task.id, 0)) for task in tasks]
            patience = Patience(attempts=1, error_share=1.0)
            return await gather(seats, policy, plan, max_turns=max_turns, patience=patience)

    return asyncio.run(run())


def test_the_whole_conversation_is_sent_as_messages(server):
    server.script = [(200, completion("<action>go north</action>"), {})]
    (episode,) = play(policy(AgentConfig(format="tagged")), episodes=1)
    assert [turn.action for turn in episode.turns] == ["go north"] * 4
    assert episode.ledger is None and episode.ending == Ending.TRUNCATED
    messages = server.requests[-1]["body"]["messages"]
    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 3, "user"]
    assert "<action>" in messages[0]["content"] and "maze" in messages[0]["content"]
    assert [m["content"] for m in messages[1::2]] == [turn.observation for turn in episode.turns]
    assert {m["content"] for m in messages[2::2]} == {"<action>go north</action>"}


def test_a_window_sends_the_goal_and_the_last_turns(server):
    play(policy(AgentConfig(context={"name": "window", "turns": 1})), episodes=1)
    messages = server.requests[-1]["body"]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert "(2 turns left out)" in messages[1]["content"]


def test_each_role_of_an_episode_sees_what_it_said_itself(server):
    player = policy().player(EPISODE, "Rules.")

    async def both() -> None:
        for role in ("seller", "buyer", "seller"):
            await player.act(Answer(f"to the {role}", role=role), None)  # type: ignore[arg-type]  # no expert's seat

    asyncio.run(both())
    sent = [[message["content"] for message in request["body"]["messages"]] for request in server.requests]
    assert sent[1] == ["Rules.", "to the buyer"]
    assert sent[2] == ["Rules.", "to the seller", "go north", "to the seller"]


def test_a_storm_of_errors_ends_episodes_as_errors_and_never_as_rewards(server):
    storm = answered(server)
    server.script = [(500, b"storm", {})]
    episodes = play(storm)
    assert {episode.ending for episode in episodes} == {Ending.INFRA_ERROR}
    assert all(episode.outcome != episode.outcome for episode in episodes), "an error has no return"


def test_the_limit_of_the_context_holds_as_far_as_the_endpoint_counts(server):
    server.script = [(200, completion("go", prompt=30, reply=5), {}), (200, completion("go", prompt=90, reply=5), {})]
    (episode,) = play(policy(AgentConfig(max_context=100)), episodes=1)
    assert (episode.ending, episode.cause, len(episode.turns)) == (Ending.TRUNCATED, "context", 2)


@pytest.mark.parametrize("nonsense", ['"many"', "-1", "true", "1180591620717411303424", "NaN"])
def test_usage_is_kept_by_turn_and_nonsense_in_it_is_ignored(server, nonsense):
    usage = f'{{"prompt_tokens": {nonsense}, "completion_tokens": 1}}'
    bad = f'{{"choices": [{{"message": {{"content": "x"}}}}], "usage": {usage}}}'.encode()
    server.script = [(200, completion("go", 7, 2), {}), (200, bad, {})]
    player = policy().player(EPISODE, "Rules.")

    async def two() -> list[Usage | None]:
        acts = [await player.act(Answer("look"), None) for _ in range(2)]  # type: ignore[arg-type]  # no expert's seat
        return [act.usage for act in acts]

    assert asyncio.run(two()) == [Usage(7, 2, cut=False), Usage()]


def test_an_answer_that_is_packed_is_refused_before_it_fills_the_memory(server):
    bomb = gzip.compress(gzip.compress(b"0" * 50_000_000))  # some kilobytes
    server.script = [(200, bomb, {"Content-Encoding": "gzip, gzip"})]
    tracemalloc.start()
    try:
        with pytest.raises(EndpointError, match="the answer comes as gzip, gzip, though"):
            ask(policy(attempts=1))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
