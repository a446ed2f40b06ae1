"""An environment that does harm on schedule, and writes down each harm just before it is done.

It answers with its task, its turn, the action that it answers and a random number, so that an answer which reached
another episode is known for what it is.
"""

import _thread
import asyncio
import atexit
import ctypes
import faulthandler
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import seed_of
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task

TURNS = 6
MARK = "MANYTURN_CHAOS"  # this variable's value is in the environment or the name of every process of a trial
GROUP = "MANYTURN_CHAOS_GROUP"  # folder of a control group with little memory
_kept: list[Any] = []


class Fault(NamedTuple):
    """One line of the log: what was done in which call, and when by the monotonic clock of the machine."""

    kind: str
    task: str
    where: str
    turn: int
    pid: int
    time: float


def read_log(log: Path) -> list[Fault]:
    """All faults that happened."""
    lines = [line.split("\t") for line in log.read_text().splitlines()] if log.exists() else []
    return [Fault(kind, task, where, int(turn), int(pid), float(at)) for kind, task, where, turn, pid, at in lines]


class Chaos(TextEnv):
    """Harm comes from a schedule: task id -> (where, turn, kind) of each harm, in the order in which they are done.

    Args:
        log: file for the faults that happened.
    """

    instructions = "Repeat what you are told."
    max_turns = TURNS + 1

    def __init__(self, log: str = "", schedule: Mapping[str, Sequence[tuple[str, int, str]]] | None = None):
        super().__init__()
        self._log, self._schedule = Path(log), schedule or {}

    def tasks(self, split: str) -> Sequence[Task]:
        return GeneratedTasks(lambda i: Task(f"{split}/{i}", split, {"i": i}), 100_000, prefix=f"{split}/")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._strike("reset", 0)
        return answer(task.id, 0, "", int(rng.integers(10**9)))

    def respond(self, action: str) -> Turn:
        self._strike("step", self.turn)
        text = answer(self.task.id, self.turn + 1, action, int(self.rng.integers(10**9)))
        mark = seed_of("mark", text) % 1000 / 1000
        return self.succeed(text, mark=mark) if self.turn + 1 == TURNS else self.go_on(text, mark=mark)

    def expert(self) -> str:
        self._strike("expert", self.turn)
        return f"{self.task.id} at {self.turn}"

    def close(self) -> None:
        if self.task is not None:
            self._strike("close", self.turn)

    def _strike(self, where: str, turn: int) -> None:
        planned = self._schedule.get(self.task.id, ())
        done = sum(fault.task == self.task.id for fault in read_log(self._log)) if planned else 0
        if done == len(planned) or tuple(planned[done][:2]) != (where, turn):
            return
        kind = planned[done][2]
        line = "\t".join(map(str, Fault(kind, self.task.id, where, turn, os.getpid(), time.monotonic())))
        with self._log.open("a") as log:
            log.write(line + "\n")
        HARMS[kind]()


class ChaosOutside(Chaos):
    """Says that it waits for something outside, so that the episodes of a worker have a thread each."""

    waits_outside = True


def answer(task: str, turn: int, action: str, number: int) -> str:
    """An observation."""
    return f"{task} {turn} [{action}] {number}"


def _raising(error: BaseException) -> Callable[[], None]:
    def harm() -> None:
        raise error

    return harm


def _recurse() -> None:
    _recurse()


def _spin() -> None:
    while True:
        pass


def _deaf() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(3600)


def _soon(number: signal.Signals) -> Callable[[], None]:
    return lambda: threading.Timer(0.01, os.kill, (os.getpid(), number)).start()


def _flee() -> None:
    """Leave a process with another parent, another session and no environment variables."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execve("/bin/sleep", [os.environ[MARK], "3600"], {})


def _starve() -> None:
    """Enter the control group and take more memory than it may have: the kernel ends the process."""
    Path(os.environ[GROUP], "cgroup.procs").write_text(str(os.getpid()))
    _kept.append(b"x" * 2**28)
    time.sleep(60)


def _times(count: int, harm: Callable[[], Any]) -> Callable[[], None]:
    return lambda: _kept.extend(harm() for _ in range(count))


def _start_thread() -> None:
    threading.Thread(target=time.sleep, args=(3600,)).start()


def _jump() -> None:
    """The wall clock jumps ahead by a year, then back by two, and so on further."""
    real = time.time
    shift = 3.2e7 * (-2) ** (len(_kept) % 20)
    _kept.append(shift)
    time.time = lambda: real() + shift
    time.sleep(0.3)


def _hold() -> None:
    """Keep Python's lock from all other threads for a while, again and again."""
    for _ in range(3):
        ctypes.PyDLL(None).usleep(150_000)


def _undue() -> None:
    """Take the deadline away that the process has set itself, and never answer."""
    faulthandler.cancel_dump_traceback_later()
    time.sleep(3600)


def _raise_in_thread() -> None:
    threading.Thread(target=_raising(RuntimeError("of a thread of its own"))).start()


RAISING = {
    error.__class__.__name__: _raising(error)
    for error in (
        *(ValueError("é🙂\ud800"), KeyError("x"), OSError(5, "I/O"), AssertionError(), StopIteration(1)),
        *(SystemExit(3), MemoryError(), TimeoutError("its own"), asyncio.CancelledError()),
    )
} | {"RecursionError": _recurse}
HANGING = {
    "sleep": lambda: time.sleep(3600),
    "spin": _spin,
    "freeze": lambda: ctypes.PyDLL(None).sleep(3600),  # C code that keeps Python's lock
    "regex": lambda: re.match(r"(a+)+$", "a" * 64 + "b"),  # so does this
    "pbkdf2": lambda: hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2**31 - 1),
    "deaf": _deaf,
}
LEAKING = {  # each goes beyond the limits of fault_env_leaks, but not beyond twice those
    "memory": _times(1, lambda: b"x" * (110 * 2**20)),
    "files": _times(60, lambda: os.open(os.devnull, os.O_RDONLY)),
    "threads": _times(30, _start_thread),
    "fled": _times(6, _flee),
    "children": _times(6, lambda: subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(3600)"])),
}
DYING = {
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSEGV": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "SIGKILL soon": _soon(signal.SIGKILL),
    "SIGSTOP": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}
IN_THREADS = {  # what an environment that is played in a thread can do to those beside it
    **{name: HANGING[name] for name in ("sleep", "spin", "freeze", "regex", "pbkdf2")},
    **{name: RAISING[name] for name in ("ValueError", "SystemExit", "CancelledError", "RecursionError")},
    **{name: DYING[name] for name in ("SIGKILL", "SIGSEGV")},
    "hold": _hold,
    "undue": _undue,
    "twenty threads": _times(20, _start_thread),
    "raise in a thread": _raise_in_thread,
    "raise at exit": lambda: atexit.register(_raising(RuntimeError("at exit"))),
    "KeyboardInterrupt": _raising(KeyboardInterrupt()),
    "interrupt main": _thread.interrupt_main,
}
HARMS: dict[str, Callable[[], Any]] = RAISING | HANGING | LEAKING | DYING | IN_THREADS
HARMS |= {"jump": _jump, "starve": _starve}
