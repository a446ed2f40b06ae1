"""Runs one command and leaves none of its processes running.

    python -I -S process_reaper.py [--left FD] PARENT COMMAND...

A keeper runs between a worker and the process with the id PARENT that asked for it. It adopts every orphan below
it, so that a process which detached itself by a double fork and a session of its own is found too. Once the command
has ended, or SIGTERM has come, or PARENT is dead and the command did not follow it in time, every descendant is killed
and the keeper exits with the command's status, 128 + n after signal n. With --left it writes to the descriptor FD what
the command left running when it ended by itself: a command line for each process, every one ended by a zero byte.

If the keeper itself is killed, the kernel kills the command, and its parent can reach the rest of the command's group
only. Processes that took another user's rights cannot be killed either.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE = 5.0  # seconds that the command has to end by itself once PARENT is dead
_LAST_SECONDS = 0.5  # that helpers of the command have to notice its end, before they count as left running
_SIGNALS = {signal.SIGCHLD, signal.SIGTERM}


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl failed")


def _start(command: list[str]) -> int:
    """Run the command in a session of its own, to be killed by the kernel if this process dies."""
    keeper = os.getpid()
    if pid := os.fork():
        return pid
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.execv(command[0], command)


def _reap(statuses: dict[int, int]) -> bool:
    """Collect children that have ended; False if there is none left."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            statuses[ended[0]] = ended[1]
    except ChildProcessError:
        return False
    return True


def _wait(pid: int, parent: int, statuses: dict[int, int]) -> None:
    """Return when everything below this process has to end."""
    last = float("inf")
    while pid not in statuses and time.monotonic() < last:
        caught = signal.sigtimedwait(_SIGNALS, 1.0)
        if caught is not None and caught.si_signo == signal.SIGTERM:
            return
        if os.getppid() != parent:
            last = min(last, time.monotonic() + _GRACE)
        _reap(statuses)


def _below(pid: int) -> list[int]:
    """Ids of all processes below one, but for those that have ended and are not collected yet."""
    pids = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split()):
                pids += [child, *_below(child)]
    return [pid for pid in pids if _words(pid)]


def _words(pid: int) -> bytes:
    """The command line of a process; empty of one that has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip()
    return b""


def _tell_left(descriptor: int, statuses: dict[int, int]) -> None:
    """Write what the command left running."""
    stop = time.monotonic() + _LAST_SECONDS
    while (left := _below(os.getpid())) and time.monotonic() < stop:
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)
        _reap(statuses)
    with os.fdopen(descriptor, "wb") as file:
        for pid in left:
            file.write(_words(pid)[:200] + b"\0")


def _kill_all(statuses: dict[int, int]) -> None:
    """Kill children until there are none: those of a child that died become children of this process."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    while _reap(statuses):
        for child in children.read_text().split():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(child), signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)


def main() -> None:
    """Run the command and clean up after it."""
    words, left = sys.argv[1:], None
    if words[0] == "--left":
        left, words = int(words[1]), words[2:]
        os.set_inheritable(left, False)  # noqa: FBT003  it takes no names
    parent, command = int(words[0]), words[1:]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    pid, statuses = _start(command), dict[int, int]()
    for stream in (0, 1):  # they are the command's alone: whoever reads sees the end when the command has ended
        os.close(stream)
    _wait(pid, parent, statuses)
    if left is not None and pid in statuses:
        _tell_left(left, statuses)
    _kill_all(statuses)
    code = os.waitstatus_to_exitcode(statuses[pid])
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
