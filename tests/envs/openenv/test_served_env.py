"""``openenv:URL``: another episode than the server's, faults of the wire as rewards, secrets in names."""

import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any

import pytest

import manyturn as mt
from manyturn.envs.contract.registration.env_registry import NeedsSetup, OutsideLost
from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle, PlaceLost

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no server: pip install 'manyturn[serve,openenv]'", allow_module_level=True)

from gymnasium.error import ResetNeeded
from served import ALL_SPLITS, FAULTY, process, transcript  # pyright: ignore[reportMissingImports]
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response
from websockets.sync.server import serve

pytestmark = pytest.mark.versions

TOKEN = "0123456789abcdef-a-token"
TEXT = {"type": "string"}
SCHEMA = {
    "action": {"properties": {"metadata": {}, "say": TEXT}, "required": ["say"]},
    "observation": {"properties": {"metadata": {}, "done": {}, "reward": {}, "heard": TEXT}},
}


def turn(text: str = "hello", **data: Any) -> str:
    observation = {"heard": text, "metadata": {}}
    return json.dumps({"type": "observation", "data": {"observation": observation, "done": False, **data}})


def error(code: str) -> str:
    return json.dumps({"type": "error", "data": {"code": code, "message": "no\x1b[31m"}})


@contextlib.contextmanager
def scripted(
    *answers: str | bytes | float | None, schema: Any = SCHEMA, splits: Any = None, elsewhere: str = ""
) -> Iterator[str]:
    """A server that answers each message of a session with the next of these; a number waits so many seconds first,
    and None hangs up. ``elsewhere`` is where it sends sessions on to."""

    def session(socket: Any) -> None:
        left = iter(answers)
        with contextlib.suppress(ConnectionClosed, StopIteration):
            for message in socket:
                if json.loads(message)["type"] == "close":
                    return
                answer = next(left)
                while isinstance(answer, float):
                    time.sleep(answer)
                    answer = next(left)
                if answer is None:
                    return
                socket.send(answer)

    def page(socket: Any, request: Any) -> Response | None:
        if request.path == "/ws":
            moved = HTTPStatus.TEMPORARY_REDIRECT
            headers = Headers({"Location": elsewhere, "Content-Length": "0"})
            return Response(moved.value, moved.phrase, headers, b"") if elsewhere else None
        known = {"/schema": schema, "/metadata": {"description": "Say something."}}
        if splits is not None:
            known |= {"/list_environments": ["one"], "/one/splits": [{"name": split} for split in splits]}
        status = HTTPStatus.OK if request.path in known else HTTPStatus.NOT_FOUND
        body = known.get(request.path)
        raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = Headers({"Content-Length": str(len(raw)), "Connection": "close"})
        return Response(status.value, status.phrase, headers, raw)

    server = serve(session, "127.0.0.1", 0, process_request=page)
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"openenv:http://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def played(name: str, **args: Any) -> Iterator[EnvHandle]:
    handle = EnvHandle(name, args)
    try:
        yield handle
    finally:
        handle.close()


@pytest.mark.deep
@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_episodes_are_those_that_the_environment_plays_here(env):
    with process(env, "openenv", "--workers", "0") as (url, _):
        served = mt.make(f"openenv:{url}")
        assert served.get_wrapper_attr("instructions").strip() == mt.make(env).get_wrapper_attr("instructions").strip()
        for seed in range(3):
            expected = transcript(env, seed, garbage=seed)
            text, info = served.reset(seed=seed)
            assert (text, info["reward_parts"]) == (expected[0].text, {})
            for here in expected[1:]:
                assert here.action is not None
                text, reward, terminated, truncated, info = served.step(here.action)
                assert (text, reward, terminated or truncated) == (here.text, here.reward, here.ended)
                assert (truncated, info["reward_parts"]) == (here.truncated, here.parts)
            assert info["success"] is True
        served.close()


def test_tasks_and_splits_are_those_of_the_server():
    with process(FAULTY, "openenv", "--workers", "0", *ALL_SPLITS) as (url, _), played(f"openenv:{url}") as handle:
        assert handle.splits == ("train", "validation", "test") and len(handle.tasks("test")) == 100
        task = handle.tasks("test")[70]
        assert handle.reset(task, seed=1).observation.startswith("hello 2070 ")
        assert handle.env.get_wrapper_attr("find")("test/70").content == task.content
        assert not handle.has_expert and "no expert or snapshots" in handle.env.get_wrapper_attr("lacks")


@pytest.mark.deep
def test_the_command_line_checks_and_evaluates_it(command, tmp_path):
    with process("manyturn/Maze-v0", "openenv", "--workers", "0", *ALL_SPLITS) as (url, _):
        found = command("check", f"openenv:{url}", "--samples", 2)
        assert found.code == 0 and "offers no expert or snapshots" in found.out, found.out + found.err
        found = command("evaluate", "random", "--env", f"openenv:{url}", "--limit", 6, "--out", tmp_path / "a")
        assert found.code == 0 and "errors 0, retried 0" in " ".join(found.out.split()), found.out + found.err
        panel = tmp_path / "panel.json"
        assert command("panel", "make", f"openenv:{url}", "--limit", 3, "--out", panel).code == 0
        found = command("evaluate", "random", "--panel", panel)
        assert found.code == 2 and "to which a connection would be made" in found.err
        found = command("evaluate", "random", "--panel", panel, "--env", f"openenv:{url}", "--out", tmp_path / "b")
        assert found.code == 0, found.out + found.err


def test_a_server_without_lists_of_tasks_has_seeds_in_one_split():
    with scripted(turn()) as name, played(name) as handle:
        assert handle.splits == ("train",) and handle.tasks("train")[7].params == {"seed": 7}
        assert "no tasks (seeds stand for them" in handle.env.get_wrapper_attr("lacks")
        assert (handle.instructions, handle.reset(handle.tasks("train")[7], 1).observation) == (
            "Say something.",
            "hello",
        )


BROKEN = {
    "no JSON": "hello",
    "bytes": b"\xff\xfe",
    "a list": "[]",
    "no data": '{"type": "observation"}',
    "another type": '{"type": "state", "data": {}}',
    "no observation": '{"type": "observation", "data": {"reward": 1.0, "done": true}}',
    "an observation without text": '{"type": "observation", "data": {"observation": {"heard": 5}, "reward": 1.0}}',
    "a reward that is none": turn(reward="1.0"),
    "NaN": turn(reward=math.nan),
    "an endless reward": turn(reward=10**400),
    "done is text": turn(reward=1.0, done="yes"),
    "an error without code": '{"type": "error", "data": "no"}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_answer_is_an_error_and_no_reward(broken):
    with scripted(turn(), BROKEN[broken], turn(reward=1.0)) as name, played(name) as handle:
        handle.reset(handle.tasks("train")[0], 1)
        with pytest.raises(EnvError, match="BadAnswer") as caught:
            handle.step("hi")
        assert not isinstance(caught.value, PlaceLost)
        with pytest.raises(ResetNeeded):
            handle.step("hi")
        assert handle.reset(handle.tasks("train")[0], 1).observation == "hello"  # in a session of its own


@pytest.mark.parametrize("code", ["SESSION_ERROR", "CAPACITY_REACHED", "FACTORY_ERROR", "EXECUTION_ERROR"])
def test_errors_of_the_server_are_told_from_those_of_the_environment(code):
    with scripted(turn(), error(code)) as name, played(name) as handle:
        handle.reset(handle.tasks("train")[0], 1)
        with pytest.raises(EnvError, match=rf"{code}: no\ufffd") as caught:
            handle.step("hi")
        assert isinstance(caught.value, PlaceLost) == (code != "EXECUTION_ERROR")


def test_an_episode_that_is_over_before_it_begins_is_none():
    with (
        scripted(turn(done=True)) as name,
        played(name) as handle,
        pytest.raises(EnvError, match="over before its first turn"),
    ):
        handle.reset(handle.tasks("train")[0], 1)


@pytest.mark.deep
def test_a_late_answer_is_never_taken_for_that_of_the_next_turn():
    with scripted(turn(), 3.0, turn("late", reward=1.0)) as name, played(name, timeout=1.5) as handle:
        handle.reset(handle.tasks("train")[0], 1)
        with pytest.raises(PlaceLost, match=r"no answer to step within 1\.5 s"):
            handle.step("hi")
        time.sleep(2)
        assert handle.reset(handle.tasks("train")[0], 1).observation == "hello"


def test_a_session_that_broke_off_between_episodes_is_opened_once_more():
    with scripted(turn()) as name, played(name) as handle:  # which hangs up at the second message
        for _ in range(3):
            assert handle.reset(handle.tasks("train")[0], 1).observation == "hello"
    with scripted(turn(), None) as name, played(name) as handle:
        handle.reset(handle.tasks("train")[0], 1)
        with pytest.raises(PlaceLost, match="broke off in step"):
            handle.step("hi")


def test_rewards_that_are_left_out_are_no_zeros():
    end = turn(done=True)
    for answers, expected in (((turn(), end), math.nan), ((turn(reward=0.5), end), 0.0), ((end,), math.nan)):
        with scripted(turn(), *answers) as name, played(name) as handle:
            handle.reset(handle.tasks("train")[0], 1)
            last = [handle.step("hi") for _ in answers][-1]
            assert last.ended and last.reward == pytest.approx(expected, nan_ok=True)
            assert last.success is (None if math.isnan(expected) else True)


def test_what_is_no_action_for_the_server_costs_a_turn_and_no_episode():
    shapes = {**SCHEMA, "action": {"properties": {"x": TEXT, "y": TEXT}, "required": ["x", "y"]}}
    with scripted(turn(), error("VALIDATION_ERROR"), turn(reward=1.0), schema=shapes) as name, played(name) as handle:
        assert '"required": ["x", "y"]' in handle.instructions
        handle.reset(handle.tasks("train")[0], 1)
        for action in ("go", "[1]", "\ud83d", '{"x": "1"}'):  # the last one is for the server to refuse
            found = handle.step(action)
            assert (found.reward, found.format_valid, found.ended) == (0.0, False, False)
            assert found.observation.startswith("That is not an action: ")
        assert handle.step('```json\n{"x": "1", "y": "2"}\n```').reward == 1.0


def test_fields_are_chosen_by_name_and_a_wrong_one_is_refused():
    several = {"properties": {"heard": TEXT, "count": {"type": "integer"}}}
    with scripted(turn(), schema={**SCHEMA, "observation": several}) as name:
        with played(name) as handle:
            assert handle.reset(handle.tasks("train")[0], 1).observation == '{"heard": "hello"}'
        with played(name, observation_field="heard") as handle:
            assert handle.reset(handle.tasks("train")[0], 1).observation == "hello"
        with pytest.raises(ValueError, match="observation_field 'seen' is none of the server's observation"):
            EnvHandle(name, {"observation_field": "seen"})


@pytest.mark.parametrize("schema", [None, "<html>", {"action": [], "observation": {}}])
def test_what_is_no_server_of_openenv_is_said(schema):
    with scripted(schema=schema) as name, pytest.raises((NeedsSetup, ValueError), match=r"no schema|gives no JSON"):
        EnvHandle(name)


@pytest.mark.parametrize("split", ["/tmp/train", "../train", "train\x1b[31m", "", "a b"])
def test_a_split_of_the_servers_is_no_path_and_no_control_sequence(split):
    with scripted(splits=["test", split]) as name, pytest.raises((EnvError, ValueError), match="lists its splits as"):
        EnvHandle(name)


def test_a_server_that_sends_us_on_to_another_address_is_not_followed():
    refused = pytest.raises(PlaceLost, match="sends us on to another address")
    with (
        scripted(turn()) as other,
        scripted(turn(), elsewhere=f"ws{other.partition('http')[2]}/ws") as name,
        played(name) as handle,
        refused,
    ):
        handle.reset(handle.tasks("train")[0], 1)


def test_a_killed_server_is_an_error_of_the_machinery(tmp_path, command):
    with process(FAULTY, "openenv", "--workers", "0") as (url, server), played(f"openenv:{url}") as handle:
        handle.reset(handle.tasks("train")[0], 1)
        server.kill()
        server.wait()
        with pytest.raises(PlaceLost, match="broke off in step"):
            handle.step("say 1")
        with pytest.raises(PlaceLost, match="cannot be reached"):
            handle.reset(mt.Task("train/0", "train", {}), 1)
    found = command("evaluate", "random", "--env", f"openenv:{url}", "--out", tmp_path)
    assert found.code == 2 and "start the server, or fix the address" in found.err


def test_what_the_environment_raises_over_there_is_its_error():
    with process(FAULTY, "openenv", "--workers", "0") as (url, _), played(f"openenv:{url}") as handle:
        handle.reset(handle.tasks("train")[0], 1)
        with pytest.raises(EnvError, match="EXECUTION_ERROR: env_error") as caught:
            handle.step("raise")
        assert not isinstance(caught.value, PlaceLost)


def test_more_sessions_than_the_server_takes_are_errors_and_fewer_are_none(command, tmp_path):
    with process(FAULTY, "openenv", "--workers", "0", "--limit", "1", *ALL_SPLITS) as (url, _):
        evaluate = ("evaluate", "random", "--env", f"openenv:{url}", "--limit", 4, "--out", tmp_path)
        found = command(*evaluate, "--env.args.sessions", 1)
        assert found.code == 0 and "errors 0, retried 0" in " ".join(found.out.split()), found.out + found.err
        with played(f"openenv:{url}") as one, played(f"openenv:{url}") as other:
            one.reset(one.tasks("train")[0], 1)
            with pytest.raises(PlaceLost, match=r"CAPACITY_REACHED: full.*--env\.args\.sessions"):
                other.reset(other.tasks("train")[0], 1)


def test_a_token_comes_from_the_environment_and_never_from_the_name(monkeypatch):
    monkeypatch.delenv("MANYTURN_OPENENV_TOKEN", raising=False)
    with process(FAULTY, "openenv", "--workers", "0", "--token", TOKEN) as (url, _):
        with pytest.raises(NeedsSetup, match="set MANYTURN_OPENENV_TOKEN"):
            EnvHandle(f"openenv:{url}")
        with pytest.raises(ValueError, match="must hold no secrets") as caught:
            EnvHandle(f"openenv:{url.replace('//', f'//user:{TOKEN}@')}")
        assert TOKEN not in str(caught.value)
        monkeypatch.setitem(os.environ, "MANYTURN_OPENENV_TOKEN", TOKEN)
        with played(f"openenv:{url}") as handle:
            assert not handle.reset(handle.tasks("train")[0], 1).ended


def test_an_address_is_read_in_any_case_and_not_with_spaces():
    with scripted(turn()) as name, played(name.replace("http", "HTTP")) as handle:
        assert handle.reset(handle.tasks("train")[0], 1).observation == "hello"
        with pytest.raises(ValueError, match="has no spaces"):
            EnvHandle(f"{name}/a b")


@pytest.mark.parametrize("url", ["", "example.org:8000", "ftp://127.0.0.1", "http://127.0.0.1:99999", "http://"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ValueError, match="no address of a server"):
        EnvHandle(f"openenv:{url}")
    with pytest.raises(OutsideLost, match="cannot be reached"):
        EnvHandle("openenv:http://127.0.0.1:9")
