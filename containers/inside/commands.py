"""Commands in the agent's name, of which nothing survives.

The server is the first process of its PID namespace. So every orphan becomes its child, ``kill(-1)`` reaches every
other process together (the kernel lets no fork slip through), and when the server ends the kernel kills what is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from manyturn.containers.inside import landlock, privilege_drop
from manyturn.containers.inside.files import Refused
from manyturn.containers.inside.wire import MAX_REPORT

_CONTROL = 0
_REPORT, _SCRIPT = 3, 9
_CHUNK = 1 << 16
_PATIENCE = 10.0  # seconds that killed processes have to be gone
CANNOT_END = 70
"""Exit status of a server whose commands cannot be ended."""
# As if the script were the argument of -c, whose length is limited.
_TAKE_SCRIPT = 'IFS= read -rd "" -u 9 BASH_EXECUTION_STRING; exec 9<&-; eval "$BASH_EXECUTION_STRING"'
_SHELL = ["bash", "--noprofile", "--norc", "-c", _TAKE_SCRIPT]


class Request(NamedTuple):
    """Command to run.

    Attributes:
        script: bash.
        folder: where.
        environ: all of its environment.
        seconds: until it is killed.
        keep: bytes of output.
        report: whether descriptor 3 is a pipe to the server.
    """

    script: bytes
    folder: str
    environ: Mapping[str, str]
    seconds: float
    keep: int
    report: bool


class Outcome(NamedTuple):
    """Result of a command: see ``Ran`` outside. ``left_out`` bytes stood between ``head`` and ``tail``."""

    status: int
    seconds: float
    timed_out: bool
    head: bytes
    tail: bytes
    left_out: int
    report: bytes


class Kept:
    """The head and the tail of a stream."""

    def __init__(self, head: int, tail: int) -> None:
        self.head, self.total = bytearray(), 0
        self._tail, self._room = bytearray(), (head, tail)

    def take(self, data: bytes) -> None:
        self.total += len(data)
        free = self._room[0] - len(self.head)
        self.head += data[:free] if free > 0 else b""
        self._tail += data[max(free, 0) :]
        if len(self._tail) > 2 * self._room[1] + _CHUNK:
            del self._tail[: len(self._tail) - self._room[1]]

    @property
    def tail(self) -> bytes:
        return bytes(self._tail[max(len(self._tail) - self._room[1], 0) :])


_wakes = -1


def prepare() -> None:
    """Be woken by children that end; to be called once."""
    global _wakes
    if os.getpid() != 1:
        raise RuntimeError("the tool server is not the first process of its container")
    _wakes, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)


def end_all(statuses: dict[int, int]) -> None:
    """Kill every other process of the container and collect what they left. If that fails, end the container."""
    last, pause = time.monotonic() + _PATIENCE, 0.0002
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        if not _reap(statuses):
            return
        if time.monotonic() > last:
            os._exit(CANNOT_END)
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def run(request: Request) -> Outcome:
    """Run a script to its end or its deadline; then no process but the server is left."""
    with contextlib.ExitStack() as opened:
        output, report, trouble = (_pipe(opened) for _ in range(3))
        script = _script(opened, request.script)
        began = time.monotonic()
        pid = os.fork()
        if not pid:
            _child(request, script, output[1], report[1], trouble[1])
        for pipe in (output, report, trouble):
            os.close(pipe[1])
        half = request.keep // 2
        outputs = {
            output[0]: Kept(half, request.keep - half),
            report[0]: Kept(MAX_REPORT, 0),
            trouble[0]: Kept(_CHUNK, 0),
        }
        statuses: dict[int, int] = {}
        timed_out = _watch(pid, outputs, statuses, began + request.seconds)
        seconds = time.monotonic() - began
        end_all(statuses)
        for pipe, sink in outputs.items():
            while _take(pipe, sink):
                pass
    if outputs[trouble[0]].total:
        raise Refused(outputs[trouble[0]].head.decode("utf-8", "replace"))
    return _outcome(statuses[pid], seconds, timed_out, outputs[output[0]], bytes(outputs[report[0]].head))


def _outcome(status: int, seconds: float, timed_out: bool, output: Kept, report: bytes) -> Outcome:
    code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    head, tail = bytes(output.head), output.tail
    return Outcome(code, seconds, timed_out, head, tail, output.total - len(head) - len(tail), report)


def _pipe(opened: contextlib.ExitStack) -> tuple[int, int]:
    """Our end, which never blocks, and the command's, which is closed by hand and stands above _SCRIPT.

    It is the agent's, for /dev/stdout and /dev/stderr open it by its name.
    """
    with privilege_drop.acting():
        ours, low = os.pipe2(os.O_CLOEXEC)
    opened.callback(os.close, ours)
    os.set_blocking(ours, False)
    theirs = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _SCRIPT + 1)
    os.close(low)
    return ours, theirs


def _script(opened: contextlib.ExitStack, text: bytes) -> int:
    low = os.memfd_create("script")
    theirs = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _SCRIPT + 1)
    opened.callback(os.close, theirs)
    with os.fdopen(low, "wb") as file:
        file.write(text)
        file.seek(0)
    return theirs


def _child(request: Request, script: int, output: int, report: int, trouble: int) -> NoReturn:
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would every program
            signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # rather than the server
        landlock.enter()  # whose descriptor the next may replace
        for handle, number in ((os.open("/dev/null", os.O_RDONLY), 0), (output, 1), (output, 2), (script, _SCRIPT)):
            os.dup2(handle, number)
        if request.report:
            os.dup2(report, _REPORT)
        privilege_drop.become()
        os.chdir(request.folder)
        os.execvpe(_SHELL[0], _SHELL, dict(request.environ))
    except BaseException as error:
        os.write(trouble, f"bash cannot be run in {request.folder}: {error}".encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _watch(pid: int, streams: dict[int, Kept], statuses: dict[int, int], deadline: float) -> bool:
    """Collect output until the command ends; True at its deadline. Whoever asked being gone ends the container."""
    poller = select.poll()
    poller.register(_CONTROL, select.POLLIN)
    poller.register(_wakes, select.POLLIN)
    for pipe in streams:
        poller.register(pipe, select.POLLIN)
    while pid not in statuses:
        left = deadline - time.monotonic()
        if left <= 0:
            return True
        for handle, _ in poller.poll(1000 * min(left, 3600.0) + 1):
            if handle == _CONTROL:  # nothing is said before the reply, so this is the end
                os._exit(0)
            elif handle == _wakes:
                with contextlib.suppress(BlockingIOError):
                    os.read(_wakes, _CHUNK)
            elif not _take(handle, streams[handle]):
                poller.unregister(handle)
        _reap(statuses)
    return False


def _take(pipe: int, sink: Kept) -> bool:
    """True if there was something."""
    try:
        data = os.read(pipe, _CHUNK)
    except BlockingIOError:
        return False
    sink.take(data)
    return bool(data)


def _reap(statuses: dict[int, int]) -> bool:
    """Collect children that ended; False if there is none left."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return True
            statuses[pid] = status
    except ChildProcessError:
        return False
