"""Engines of benchmarks in a Java process: started with limits, called with a deadline, ended with this process.

The process listens on loopback and wants a token. It stands below a keeper (``process_reaper``), which ends it when
this process ends, in whatever way. The package py4j speaks with it. A call is sent once: py4j's own client would send
it again after some errors, and a turn could count twice.
"""

import contextlib
import os
import select
import shutil
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from manyturn.envs.contract.registration.env_registry import NeedsSetup, OutsideLost
from manyturn.envs.hosting.handle import process_reaper

HEAP_MB = 512  # without a bound a heap grows to a quarter of the machine
_START_SECONDS = 180.0  # 2 s, and more on a machine that is busy
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


_processes: dict[tuple[int, str, float], "JavaProcess"] = {}
_lock = threading.Lock()


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
        self.process = _shared(package, jar, seconds)
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
    """A Java process and the way into it. Arguments and errors as for ``JavaObject``."""

    def __init__(self, package: str, jar: str, seconds: float):
        classes = f"{_server_jar(package)}{os.pathsep}{_folder(package) / jar}"
        java = [java_program(), *_LIMITS, "-classpath", classes, "py4j.GatewayServer"]
        self._name, self._seconds, self._lock = package, seconds, threading.RLock()
        environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(process_reaper.__file__), str(os.getpid())),
                *(*java, "--die-on-broken-pipe", "--enable-auth", "0"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
            start_new_session=True,  # what a terminal sends is meant for this process
        )
        self._finalizer = weakref.finalize(self, _end, self._process, os.getpid())
        try:
            self._gateway = _gateway(*self._address(), seconds)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The keeper's process id; Java is its child."""
        return self._process.pid

    def make(self, entry: str) -> Any:
        """A new object of a class."""
        with self.turn(f"make {entry}"):
            return getattr(self._gateway.jvm, entry)()

    def joined(self, texts: Any) -> str:
        """A list in Java as one text with line breaks."""
        return self._gateway.jvm.java.lang.String.join("\n", texts)

    def close(self) -> None:
        """End the process."""
        self._finalizer()

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
        stream = self._process.stdout
        assert stream is not None
        lines = _lines(stream, time.monotonic() + _START_SECONDS)
        # What the engine prints later goes nowhere: Java ignores that its output cannot be written.
        stream.close()
        if len(lines) != 2 or not lines[0].isdecimal():
            why = " ".join(lines)[:300] or "it said nothing"
            raise JavaLost(f"Java did not start for {self._name}: {why}: {_JAVA}")
        return int(lines[0]), lines[1]


def _shared(package: str, jar: str, seconds: float) -> JavaProcess:
    """This process's Java process, started when first asked for, and again if it has ended."""
    key = (os.getpid(), package, seconds)
    with _lock:
        process = _processes.get(key)
        if process is None or not process.alive:
            if process is not None:
                process.close()
            process = _processes[key] = JavaProcess(package, jar, seconds)
        return process


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


def _lines(stream: IO[bytes], until: float, count: int = 2) -> list[str]:
    """The first lines of a stream, fewer if it ends or the time is over before."""
    text = b""
    while text.count(b"\n") < count and select.select([stream], [], [], max(0.0, until - time.monotonic()))[0]:
        chunk = os.read(stream.fileno(), 4096)
        if not chunk:
            break
        text += chunk
    return text.decode(errors="replace").split("\n")[:count] if text else []


def _end(process: subprocess.Popen[bytes], parent: int) -> None:
    """Kill Java with whatever is below it, and collect the keeper."""
    if os.getpid() != parent:  # this one was forked from the one that may end it
        return
    streams: Sequence[IO[bytes] | None] = (process.stdin, process.stdout)
    process.terminate()  # the keeper kills all that is below it
    process.wait()
    for stream in streams:
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
