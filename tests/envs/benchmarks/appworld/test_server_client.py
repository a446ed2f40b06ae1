"""A server that dies, hangs, drips, floods or talks nonsense is an error of its own kind, never a grade or a text."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.benchmarks.appworld import server_client as module
from manyturn.envs.benchmarks.appworld.server_client import Address, AppWorldError, Brief, Grade, Server, grade_of

# Recorded from AppWorld 0.1.3 with a task made by hand.
INITIALIZED = {
    "task_id": "one_1",
    "instruction": "Create a todoist label named 'blue'.",
    "supervisor": {"first_name": "Ann", "last_name": "Smith", "email": "ann@example.com", "phone_number": "5550100"},
    "datetime": "2023-05-18T12:00:00",
}
PASS = {"requirement": "assert only label changed.", "label": "no_op_pass"}
FAILURE = {"requirement": "assert answers match.", "trace": "AssertionError", "label": "no_op_fail"}
EVALUATED = {"success": False, "difficulty": 1, "num_tests": 2, "passes": [PASS], "failures": [FAILURE]}
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def reply(output: Any) -> bytes:
    body = json.dumps({"output": output}).encode()
    return OK + b"content-length: %d\r\n\r\n%s" % (len(body), body)


Behaviour = Callable[[socket.socket], None]


class Listener:
    """Accepts connections on loopback, reads each request, and lets ``behave`` do the rest."""

    def __init__(self) -> None:
        self.behave: Behaviour = lambda connection: None
        self.requests: list[tuple[str, Any]] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._socket.getsockname())
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, *raw: bytes) -> None:
        """Answer the next requests with these bytes, one after another."""
        left = list(raw)
        self.behave = lambda connection: connection.sendall(left.pop(0))

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it was closed before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as file:
                method = file.readline().split()[1].decode()
                length = 0
                while line := file.readline().strip():
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                self.requests.append((method, json.loads(file.read(length))))
                try:
                    self.behave(connection)
                except OSError:
                    continue


@pytest.fixture
def listener() -> Iterator[Listener]:
    opened = Listener()
    yield opened
    opened.close()


@pytest.fixture
def server(listener: Listener) -> Server:
    """In a world already."""
    client = Server(listener.address, slack=2.0)
    listener.say(reply(INITIALIZED))
    client.initialize("one_1", 1)
    return client


def test_requests_and_replies_are_those_of_appworld(listener):
    server = Server(listener.address)
    listener.say(*map(reply, (INITIALIZED, "hello\n", True, EVALUATED)))
    brief = server.initialize("one_1", 30, load_ground_truth=False)
    assert brief == Brief(INITIALIZED["instruction"], "Ann", "Smith", "ann@example.com", "5550100")
    assert server.execute("print('hello \ud800')") == "hello\n"
    assert server.completed() is True
    assert server.evaluate() == Grade(2, 1, 0)
    assert listener.requests == [
        ("/initialize", {"task_id": "one_1", "timeout_seconds": 30, "load_ground_truth": False}),
        ("/execute", {"task_id": "one_1", "code": "print('hello \ud800')"}),
        ("/task_completed", {"task_id": "one_1"}),
        ("/evaluate", {"task_id": "one_1", "suppress_errors": True}),
    ]


def hang(connection: socket.socket) -> None:
    connection.recv(1)  # nothing comes, until the client hangs up


def drip(connection: socket.socket) -> None:
    for byte in OK + b"content-length: 1000\r\n\r\n" + b" " * 1000:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def flood(connection: socket.socket) -> None:
    connection.sendall(OK + b"\r\n" + b'{"output": "')
    while True:
        connection.sendall(b"x" * 65536)


def headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"x-more: 1\r\n" * 1000)


FAULTS: dict[str, tuple[Behaviour, str]] = {
    "hangs": (hang, "no reply within"),
    "drips": (drip, "no reply within|no whole reply within"),
    "floods": (flood, "longer than"),
    "floods with headers": (headers, "HTTPException"),
    "dies": (lambda connection: None, "RemoteDisconnected"),
    "dies in its reply": (lambda c: c.sendall(OK + b'content-length: 99\r\n\r\n{"output": "a"}'), "IncompleteRead"),
    "speaks no HTTP": (lambda c: c.sendall(b"SSH-2.0\r\n"), "BadStatusLine"),
    "fails": (lambda c: c.sendall(b"HTTP/1.1 500 E\r\n\r\nInternal Server Error"), "status 500: 'Internal"),
    "redirects": (lambda c: c.sendall(b"HTTP/1.1 302 F\r\nlocation: http://127.0.0.1/\r\n\r\n"), "status 302"),
    "speaks no JSON": (lambda c: c.sendall(OK + b"\r\n<html>"), "no reply of AppWorld"),
    "nests": (lambda c: c.sendall(OK + b"\r\n" + b"[" * 100_000), "no reply of AppWorld"),
    "leaves out": (lambda c: c.sendall(OK + b'\r\n{"message": 1}'), "no reply of AppWorld"),
    "sends a list": (lambda c: c.sendall(OK + b"\r\n[]"), "no reply of AppWorld"),
}


@pytest.mark.parametrize(("behave", "why"), FAULTS.values(), ids=FAULTS)
def test_a_broken_server_is_an_error_in_time(listener, server, monkeypatch, behave, why):
    monkeypatch.setattr(module, "LONGEST_REPLY", 2**20)
    server._slack = 0.5
    listener.behave = behave
    with pytest.raises(AppWorldError, match=why):
        server.completed()


def test_a_server_that_is_not_there_is_an_error(listener, server):
    listener.close()
    with pytest.raises(AppWorldError, match="ConnectionRefusedError"):
        server.execute("1")
    with pytest.raises(AppWorldError, match="FileNotFoundError"):
        Server(Address("/nowhere/socket")).initialize("one_1", 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(EVALUATED)), inner, max_size=5),
    max_leaves=8,
)


@given(JSON)
def test_no_nonsense_becomes_a_grade(output):
    with pytest.raises(AppWorldError):
        grade_of(output)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_a_grade_agrees_with_itself(passes, failures, damage, unseen, success):
    """Tests that AppWorld did not get to are neither passed nor damage, but they are there."""
    damage = min(damage, failures)
    labels = ["no_op_pass"] * damage + ["no_op_fail"] * (failures - damage)
    tests = passes + failures + unseen
    record = {"num_tests": tests, "passes": [PASS] * passes, "success": success}
    record["failures"] = [{**FAILURE, "label": label} for label in labels]
    if tests and success == (passes == tests):
        assert grade_of(record) == Grade(tests, passes, damage)
        assert grade_of(record).success == (failures + unseen == 0)
    else:
        with pytest.raises(AppWorldError):
            grade_of(record)


WRONG = {
    "another task": {**INITIALIZED, "task_id": "one_2"},
    "no supervisor": {**INITIALIZED, "supervisor": None},
    "half a supervisor": {**INITIALIZED, "supervisor": {"first_name": "Ann"}},
    "no text": {**INITIALIZED, "instruction": 3},
    "no object": [INITIALIZED],
}


@pytest.mark.parametrize("output", WRONG.values(), ids=WRONG)
def test_a_brief_that_is_none_is_an_error(listener, output):
    listener.say(reply(output))
    with pytest.raises(AppWorldError, match="initialize"):
        Server(listener.address).initialize("one_1", 1)


@pytest.mark.parametrize("output", [None, 3, ["a"], {"text": "a"}])
def test_an_output_of_another_type_is_an_error(listener, server, output):
    listener.say(reply(output), reply(output))
    with pytest.raises(AppWorldError, match="execute"):
        server.execute("1")
    with pytest.raises(AppWorldError, match="task_completed"):
        server.completed()
