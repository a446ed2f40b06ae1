"""Engines of benchmarks in a Java process: started with limits, called with a deadline, ended with this process.

The process listens on loopback and wants a token. It stands below a keeper (``process_reaper``), which ends it when
this process ends, in whatever way. The package py4j speaks with it. A call is sent once: py4j's own client would send
it again after some errors, and a turn could count twice.
"""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from manyturn.envs.benchmarks.engine_process import START_SECONDS, EngineProcess, shared, tested_package
from manyturn.envs.contract.registration.env_registry import NeedsSetup, OutsideLost

HEAP_MB = 512  # without a bound a heap grows to a quarter of the machine
_LIMITS = (
    f"-Xmx{HEAP_MB}m",
    "-XX:MaxMetaspaceSize=256m",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+UseSerialGC",  # others start threads for each core
    "-XX:-UsePerfData",  # no files in /tmp
    "-Dfile.encoding=UTF-8",
    # Sets of objects are walked in the order of their hashes, which are drawn at random for each object. With a
    # constant in its place a load is a function of its arguments, however many loads came before.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
)
_JAVA = "install a Java runtime of version 8 or newer, such as Debian's default-jre-headless, or set JAVA_HOME"


class JavaLost(OutsideLost):
    """The Java process ended, or gave no answer in time and was killed: the episode in it is lost."""


class JavaError(RuntimeError):
    """The engine's own code raised."""


class JavaObject:
    """An object in the Java process that all environments of this process share; they take turns in it.

    Args:
        package: the installed package that holds the jar; also the name of the extra.
        jar: name of the jar in the package's folder.
        entry: full name of the object's class, which is made without arguments.
        seconds: that a call may take before the process is killed.

    Raises:
        NeedsSetup: the package or Java is missing.
        JavaLost: the process does not start.
    """

    def __init__(self, package: str, jar: str, entry: str, seconds: float):
        self.process = shared(JavaProcess, package, jar, seconds)
        self._object = self.process.make(entry)

    @property
    def alive(self) -> bool:
        return self.process.alive

    def call(self, method: str, *arguments: str | int | bool) -> Any:
        """A method's answer. Raises JavaLost or JavaError."""
        with self.process.turn(method):
            return getattr(self._object, method)(*arguments)

    def texts(self, method: str) -> list[str]:
        """A method's answer, where it is a list of texts without line breaks."""
        with self.process.turn(method):
            text = self.process.joined(getattr(self._object, method)())
        return text.split("\n") if text else []


class JavaProcess:
    """A Java process and the way into it. Arguments and errors as for ``JavaObject``.

    Attributes:
        user: the object that played last, for engines of which objects share a state.
    """

    user: "JavaObject | None" = None

    def __init__(self, package: str, jar: str, seconds: float):
        classes = f"{_server_jar(package)}{os.pathsep}{_folder(package) / jar}"
        java = [java_program(), *_LIMITS, "-classpath", classes, "py4j.GatewayServer"]
        self._name, self._seconds, self._lock = package, seconds, threading.RLock()
        # Engines read files of their own, by name, in the folder where they run.
        self._process = EngineProcess([*java, "--die-on-broken-pipe", "--enable-auth", "0"], folder=_folder(package))
        try:
            self._gateway = _gateway(*self._address(), seconds)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._process.alive

    @property
    def pid(self) -> int:
        """The keeper's process id; Java is its child."""
        return self._process.pid

    def make(self, entry: str, *arguments: Any) -> Any:
        """A new object of a class."""
        with self.turn(f"make {entry}"):
            return getattr(self._gateway.jvm, entry)(*arguments)

    def joined(self, texts: Any) -> str:
        """A list in Java as one text with line breaks."""
        return self._gateway.jvm.java.lang.String.join("\n", texts)

    def close(self) -> None:
        """End the process."""
        self._process.close()

    @contextlib.contextmanager
    def turn(self, what: str) -> Iterator[None]:
        """A time when no other thread calls. Kills the process if it gives no answer, or raised."""
        from py4j.protocol import Py4JError, Py4JNetworkError

        with self._lock:
            if not self.alive:
                raise JavaLost(f"the Java process of {self._name} ended before {what}")
            try:
                yield
            except Py4JNetworkError as error:
                hung = isinstance(error.cause, TimeoutError)
                why = f"gave no answer to {what} within {self._seconds:g} s" if hung else f"ended in {what}"
                self.close()
                raise JavaLost(f"the Java process of {self._name} {why}") from None
            except Py4JError as error:
                raise JavaError(f"{self._name} raised in {what}: {str(error)[:500]}") from None

    def _address(self) -> tuple[int, str]:
        """The port and the token that the process prints first."""
        until, lines = time.monotonic() + START_SECONDS, list[str]()
        with contextlib.suppress(TimeoutError):
            lines += [self._process.line(until).decode(errors="replace") for _ in range(2)]
        # What the engine prints later goes nowhere: Java ignores that its output cannot be written.
        self._process.stdout.close()
        if len(lines) != 2 or not lines[0].isdecimal():
            why = " ".join(lines)[:300].strip() or "it said nothing"
            raise JavaLost(f"Java did not start for {self._name}: {why}: {_JAVA}")
        return int(lines[0]), lines[1]


def require_engine(package: str, version: str) -> None:
    """Raise NeedsSetup unless a package in the version that was tested, py4j and Java are installed."""
    tested_package(package, version)
    _folder(package)
    _server_jar(package)
    java_program()


def java_program() -> str:
    """Path of Java. Raises NeedsSetup."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        raise NeedsSetup(f"there is no Java{f' in JAVA_HOME={home}' if home else ''}: {_JAVA}")
    return os.path.abspath(java)


def _folder(package: str) -> Path:
    """Folder of an installed package, which is not imported. Raises NeedsSetup."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise NeedsSetup(f"the package {package} is not installed: pip install 'manyturn[{package.replace('_', '-')}]'")
    return Path(spec.origin).resolve().parent


def _server_jar(package: str) -> str:
    """The jar of py4j's own server. Raises NeedsSetup."""
    if find_spec("py4j") is not None:
        from py4j.java_gateway import find_jar_path

        if jar := find_jar_path():
            return jar
    raise NeedsSetup(f"the package py4j is not installed: pip install 'manyturn[{package.replace('_', '-')}]'")


def _gateway(port: int, token: str, seconds: float) -> Any:
    """py4j's way into the process, without its second tries and its reports to the root logger."""
    from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway
    from py4j.protocol import Py4JNetworkError

    parent = os.getpid()

    class Client(GatewayClient):
        def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
            if os.getpid() != parent:  # it would write into the connections of the process that this one is forked from
                raise Py4JNetworkError("this process has no connection")
            connection = self._get_connection()
            try:
                answer = connection.send_command(command)
            except Py4JNetworkError:
                connection.close(reset=True)
                raise
            self._give_back_connection(connection)
            return answer

    class Gateway(JavaGateway):
        def _create_gateway_client(self) -> GatewayClient:
            return Client(gateway_parameters=parameters)

    parameters = GatewayParameters(port=port, auth_token=token, read_timeout=seconds)
    return Gateway(gateway_parameters=parameters)
