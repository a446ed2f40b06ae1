"""A client of AppWorld's environment server: one request at a time, bounded in time and size.

The server holds one world, of the task that was initialized last. Its replies are ``{"output": ...}`` with status 200;
a mistaken order of requests, and whatever goes wrong inside, is status 500.
"""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

LONGEST_REPLY = 16 * 2**20  # bytes


class AppWorldError(RuntimeError):
    """AppWorld's server is silent, gone or broken. It is the environment's fault, never the agent's."""


class AgentBroke(AppWorldError):
    """The agent's own process ended, hangs or says what is no answer: the doing of the code that it runs."""


class Brief(NamedTuple):
    """A task as the agent reads it: an instruction, and the person who gives it."""

    instruction: str
    first_name: str
    last_name: str
    email: str
    phone_number: str


class Grade(NamedTuple):
    """Results of AppWorld's tests.

    Attributes:
        tests: how many there are.
        passed: how many pass.
        damage: how many fail that would pass had nothing been done: something was changed that was not to be.
        tampered: why the state that the tests judged cannot be what AppWorld wrote; empty if nothing speaks against it.
    """

    tests: int
    passed: int
    damage: int
    tampered: str = ""

    @property
    def success(self) -> bool:
        return self.passed == self.tests


class Address(NamedTuple):
    """A server's address: a host and its port, or with port 0 a socket's path in the file system."""

    host: str
    port: int = 0


class Server:
    """Speaks to the server at an address; every method raises AppWorldError.

    Args:
        address: where it is.
        slack: seconds that a request may take besides the code that it runs.
    """

    def __init__(self, address: Address, slack: float = 60.0):
        self.address, self._slack = address, slack
        self._task = ""

    def initialize(self, task: str, seconds: int, **options: Any) -> Brief:
        """Make the task's world, in which code may run for ``seconds`` at a time."""
        output = self._post("initialize", self._slack, task_id=task, timeout_seconds=seconds, **options)
        self._task, self._seconds = task, seconds
        try:
            person = output["supervisor"]
            brief = Brief(output["instruction"], *(person[name] for name in Brief._fields[1:]))
            if output["task_id"] != task:
                raise ValueError("another task")
        except (LookupError, TypeError, ValueError) as error:
            raise AppWorldError(f"initialize: this tells of no task ({error}): {output!r:.200}") from None
        if not all(isinstance(text, str) for text in brief):
            raise AppWorldError(f"initialize: this tells of no task: {output!r:.200}")
        return brief

    def execute(self, code: str) -> str:
        """Run code in the world's interpreter; what it printed or raised."""
        output = self._post("execute", self._seconds + self._slack, task_id=self._task, code=code)
        if not isinstance(output, str):
            raise AppWorldError(f"execute: output is text, not {output!r:.200}")
        return output

    def completed(self) -> bool:
        """True if the agent has declared the task to be done, or to be impossible."""
        output = self._post("task_completed", self._slack, task_id=self._task)
        if not isinstance(output, bool):
            raise AppWorldError(f"task_completed: true or false, not {output!r:.200}")
        return output

    def evaluate(self) -> Grade:
        """Run the task's tests on the world as it is."""
        return grade_of(self._post("evaluate", self._slack, task_id=self._task, suppress_errors=True))

    def _post(self, method: str, seconds: float, **fields: Any) -> Any:
        status, raw = self._exchange(method, seconds, json.dumps(fields).encode())
        if status != 200:
            raise AppWorldError(f"{method}: status {status}: {raw[:200].decode(errors='replace')!r}")
        try:
            return json.loads(raw)["output"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise AppWorldError(f"{method}: this is no reply of AppWorld: {raw[:200]!r}") from None

    def _exchange(self, method: str, seconds: float, body: bytes) -> tuple[int, bytes]:
        connection = _Connection(self.address, seconds)
        late = threading.Timer(seconds, connection.cut)  # a socket's own limit starts again with each byte
        late.start()
        try:
            connection.request("POST", f"/{method}", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            raw = response.read(LONGEST_REPLY + 1)
            if len(raw) > LONGEST_REPLY:
                raise AppWorldError(f"{method}: the reply is longer than {LONGEST_REPLY} bytes")
            if response.length:  # http.client takes an end before its time for an end
                raise http.client.IncompleteRead(raw[:0], response.length)
        except (OSError, http.client.HTTPException) as error:
            if connection.was_cut or isinstance(error, TimeoutError):
                raise AppWorldError(f"{method}: no reply within {seconds:g} s") from None
            raise AppWorldError(f"{method}: {type(error).__name__}: {error}") from None
        finally:
            late.cancel()
            connection.close()
        if connection.was_cut:
            raise AppWorldError(f"{method}: no whole reply within {seconds:g} s")
        return response.status, raw


class _Connection(http.client.HTTPConnection):
    """A connection to an address, which another thread may cut."""

    def __init__(self, address: Address, seconds: float):
        super().__init__("localhost", timeout=seconds)
        self._address, self.was_cut = address, False

    def connect(self) -> None:
        if self._address.port:
            self.sock = socket.create_connection(self._address, self.timeout)
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._address.host)
        self._socket = self.sock  # http.client lets go of it before the body is read

    def cut(self) -> None:
        self.was_cut = True
        with contextlib.suppress(AttributeError, OSError):  # not connected yet, or not any more
            self._socket.shutdown(socket.SHUT_RDWR)


def grade_of(output: Mapping[str, Any]) -> Grade:
    """The grade that AppWorld's own record of its tests gives. Raises AppWorldError if it contradicts itself."""
    try:
        tests, passes, failures = output["num_tests"], len(output["passes"]), output["failures"]
        damage = sum(failure["label"] == "no_op_pass" for failure in failures)
        grade = Grade(tests, passes, damage)
        if type(tests) is not int or tests < 1 or passes + len(failures) > tests:
            raise ValueError("the numbers of tests do not agree")
        if output["success"] is not grade.success:
            raise ValueError("success and the numbers of tests do not agree")
    except (LookupError, TypeError, ValueError) as error:
        raise AppWorldError(f"evaluate: this is no grade ({error}): {output!r:.200}") from None
    return grade
