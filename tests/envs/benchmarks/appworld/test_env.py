"""Episodes: code in, output out, and a reward only from the tests of the state that is left."""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.benchmarks.appworld import env as module
from manyturn.envs.benchmarks.appworld.env import LONGEST_CODE, LONGEST_OUTPUT, AppWorld, code_of
from manyturn.envs.benchmarks.appworld.launcher import shared
from manyturn.envs.benchmarks.appworld.server_client import AppWorldError
from manyturn.envs.benchmarks.appworld.world import address_of
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle

LABELS = {"one_1": "blue", "one_2": "red", "two_1": "blue", "endless_1": "endless"}


class Served(ThreadingHTTPServer):
    """A server with one world, whose code is ``print TEXT``, ``label NAME`` or ``done``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.task, self.labels, self.done, self.codes = "", [], False, []
        self.broken = False
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, fields: dict) -> object:
        if path == "/initialize":
            self.task, self.labels, self.done = fields["task_id"], [], False
            person = {"first_name": "Ann", "last_name": "Smith", "email": "a@example.com", "phone_number": "555"}
            brief = {"task_id": self.task, "instruction": f"Make the label {LABELS[self.task]}.\x1b[31m"}
            return brief | {"supervisor": person, "datetime": "2023-05-18T12:00:00"}
        assert fields["task_id"] == self.task and not self.broken
        if path == "/execute":
            self.codes.append(fields["code"])
            word, _, rest = fields["code"].strip().partition(" ")
            self.done |= word == "done"
            self.labels += [rest] if word == "label" else []
            return f"{rest}\n" if word == "print" else "Execution successful."
        if path == "/task_completed":
            return self.done
        assert path == "/evaluate"
        expected = {LABELS[self.task]}
        tests = {"no_op_fail": expected <= {*self.labels}, "no_op_pass": {*self.labels} <= expected}
        passes = [{"requirement": "secret", "label": label} for label, passed in tests.items() if passed]
        failures = [{"requirement": "secret", "trace": "", "label": label} for label, ok in tests.items() if not ok]
        return {"success": not failures, "num_tests": 2, "passes": passes, "failures": failures}


class _Handler(BaseHTTPRequestHandler):
    server: Served

    def do_POST(self) -> None:
        fields = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            status, body = 200, json.dumps({"output": self.server.answer(self.path, fields)}).encode()
        except AssertionError:
            status, body = 500, b"Internal Server Error"
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def env(served: Served, root: Path) -> Iterator[AppWorld]:
    world = AppWorld(root=str(root), url=served.url, max_turns=5)
    yield world
    world.close()


def test_an_episode_that_does_what_is_asked_for_succeeds(env):
    text, info = env.reset(options={"task": "one_1"})
    assert text == (
        "Your supervisor: Ann Smith, email a@example.com, phone number 555.\nTask: Make the label blue.\\x1b[31m"
    )
    assert info["split"] == "train"
    text, reward, *ended, info = env.step("I print.\n```python\nprint hello\n```")
    assert (text, reward, ended, info["understood"]) == ("hello", 0.0, [False, False], True)
    env.step("label blue")
    text, reward, *ended, info = env.step("done")
    assert (reward, ended, info["success"]) == (1.0, [True, False], True)
    measures = {"tests_passed": 1.0, "collateral_damage": 0.0, "declared_done": 1.0}
    assert info["measures"] == measures | {"official": 1.0, "tampered": 0.0}
    assert "secret" not in text


def test_collateral_damage_spoils_the_whole_and_is_told_apart(env):
    env.reset(options={"task": "one_2"})
    env.step("label red")
    env.step("label green")
    *_, terminated, truncated, info = env.step("done")
    assert info["reward_parts"] == {"outcome": 0.0} and terminated and not truncated and info["success"] is False
    measures = {"tests_passed": 0.5, "collateral_damage": 1.0, "declared_done": 1.0}
    assert info["measures"] == measures | {"official": 0.0, "tampered": 0.0}


@pytest.mark.parametrize(("label", "success"), [("blue", True), ("red", False)])
def test_at_the_last_turn_the_state_counts_declared_or_not(env, label, success):
    env.reset(options={"task": "one_1"})
    env.step(f"label {label}")
    for _ in range(3):
        env.step("print x")
    _, reward, terminated, truncated, info = env.step("two\n```\nx\n```\nblocks\n```\ny\n```")
    assert (terminated, truncated, info["success"]) == (success, not success, success)
    assert reward == float(success) and info["measures"]["declared_done"] == 0.0
    assert ("outcome" in info["reward_parts"]) == success  # what was cut off has no outcome


def test_a_broken_server_is_never_a_reward(served, root):
    env = AppWorld(root=str(root), url=served.url)
    env.reset(seed=0)
    served.broken = True
    with pytest.raises(AppWorldError, match="500"):
        env.step("done")
    served.broken = False
    env.reset(seed=0)
    assert env.step("print x")[0] == "x"
    env.close()


def test_a_server_is_one_environments_alone(env, served, root):
    other = AppWorld(root=str(root), url=[served.url])
    env.reset(options={"task": "one_1"})
    with pytest.raises(AppWorldError, match="every server is in use"):
        other.reset(options={"task": "one_1"})
    env.close()
    other.reset(options={"task": "one_1"})
    with pytest.raises(AppWorldError, match="every server is in use"):
        env.reset(seed=0)
    other.close()


def test_several_servers_hold_as_many_episodes(served, root):
    second = Served()
    envs = [AppWorld(root=str(root), url=[served.url, second.url]) for _ in range(2)]
    assert envs[0].side_by_side == 2
    for env, label in zip(envs, ("blue", "red"), strict=True):
        env.reset(options={"task": "one_1"})
        env.step(f"label {label}")
    assert [env.step("done")[4]["success"] for env in envs] == [True, False]
    for env in envs:
        env.close()
    second.shutdown()
    second.server_close()


def test_output_is_cut_and_harmless(env):
    env.reset(seed=0)
    text = env.step("print " + "\x1b[0m" * 9_000)[0]
    assert "\x1b" not in text and len(text) < LONGEST_OUTPUT + 100 and "left out" in text


@pytest.mark.parametrize(
    "action", ["```python\na\n```\n```python\nb\n```", "x" * (LONGEST_CODE + 1), "print \ud800", "print \0"]
)
def test_what_is_no_code_never_reaches_the_server(env, served, action):
    env.reset(seed=0)
    assert env.step(action)[4]["understood"] is False
    assert served.codes == []


def test_the_situation_is_what_was_run_and_not_what_was_shown(env):
    anchors = []
    for label in ("blue", "red"):
        env.reset(options={"task": "one_1"})
        anchors.append(env.step(f"label {label}")[4]["anchor"])
    assert anchors[0] != anchors[1] and anchors[0][2] == anchors[1][2]


def test_a_snapshot_continues(env, served, root):
    env.reset(options={"task": "one_1"})
    env.step("label blue")
    data = env.snapshot()
    env.close()
    other = AppWorld(root=str(root), url=served.url)
    other.restore(data)
    assert other.step("done")[1] == 1.0
    other.close()


def test_gymnasiums_own_check_passes(env):
    check_env(env, skip_render_check=True)


@given(st.text(alphabet=st.characters(exclude_characters="`")), st.text(alphabet=st.characters(exclude_characters="`")))
def test_one_block_is_taken_out_and_text_without_one_is_all_code(words, code):
    code = code.replace("\r", "")
    assert code_of(words) == words
    assert code_of(f"{words}\n```python\n{code}\n```\n{words}") == f"{code}\n"
    assert code_of(f"{words}\n```\n{code}\n") == f"{code}\n"  # it was stopped before the block's end
    assert code_of(f"```py\n{code}\n```\n```\n{code}\n```") is None


def test_what_is_missing_is_named(root, served, python, tmp_path):
    with pytest.raises(NeedsSetup, match=r"pip install appworld.*appworld install.*appworld download data"):
        AppWorld()
    with pytest.raises(NeedsSetup, match="either its own Python or a server's url"):
        AppWorld(root=str(root), python=python, url=served.url)
    with pytest.raises(NeedsSetup, match="there is no interpreter"):
        AppWorld(root=str(root), python=str(tmp_path / "python"))
    with pytest.raises(NeedsSetup, match="appworld is not installed"):
        AppWorld(root=str(root), python=sys.executable)
    with pytest.raises(NeedsSetup, match="no interpreter that works"):
        AppWorld(root=str(root), python="/bin/false")
    with pytest.raises(NeedsSetup, match="the split test_challenge is absent"):
        AppWorld("test_challenge", root=str(root), url=served.url)
    with pytest.raises(ValueError, match="seconds"):
        AppWorld(root=str(root), url=served.url, seconds=0)


@pytest.mark.parametrize(
    "url", ["http://example.com:80", "https://127.0.0.1:80", "127.0.0.1:80", "http://127.0.0.1", "http://[::2]:80"]
)
def test_only_servers_of_this_machine_are_spoken_to(root, url):
    with pytest.raises(ValueError, match="this machine"):
        AppWorld(root=str(root), url=url)
    assert address_of("http://localhost:80/") == ("localhost", 80)


def test_where_code_cannot_be_confined_it_is_not_run(root, python, monkeypatch):
    monkeypatch.setattr("manyturn.envs.benchmarks.appworld.confinement.platform.machine", lambda: "riscv64")
    with pytest.raises(NeedsSetup, match=r"riscv64.*container.*confine=False"):
        AppWorld(root=str(root), python=python)
    assert AppWorld(root=str(root), python=python, confine=False)


@pytest.mark.usefixtures("confinable")
def test_an_episode_in_a_process_of_its_own(root, python):
    env = AppWorld(root=str(root), python=python, seconds=5)
    env.reset(options={"task": "one_1"})
    env.step("label blue")
    assert env.step("done")[4]["measures"]["tests_passed"] == 1.0
    assert env.reset(seed=1)[0]
    env.close()


@pytest.mark.usefixtures("confinable")
def test_an_error_reaches_the_host_as_the_environments(root, python):
    handle = EnvHandle(f"{module.__file__}:AppWorld", {"root": str(root), "python": python})
    handle.reset(handle.tasks("train")[0], 0)
    shared(*handle.env.unwrapped._world._place).close()
    with pytest.raises(EnvError, match="AppWorldError"):
        handle.step("print on")
    handle.close()
