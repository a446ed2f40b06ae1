"""Work on an environment in a process of its own, so that the caller goes on, however the environment behaves.

The work is a function of a module that yields plain values. It ends with everything that it started, as a worker does
(``worker.py``): when it is done, when the environment does not answer in time or holds more than its limits allow, or
when the caller does not want more.
"""

import contextlib
import importlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from manyturn.envs.hosting.handle.deadline import where_it_hung
from manyturn.envs.hosting.handle.env_handle import EnvError
from manyturn.envs.hosting.handle.env_spec_message import KEEPER
from manyturn.envs.hosting.handle.messages import decode, encode
from manyturn.envs.hosting.local.resource_use import LOOK_SECONDS, MANY_AT_ONCE, WorkerLimits, held_below

_START_SECONDS = 60.0  # imports, on a machine that is busy
_SLACK_SECONDS = 5.0  # the process times itself first, so that it can say where the environment hangs
_END_SECONDS = 10.0  # what environments share is closed, and what still runs is counted
_TAIL_BYTES = 4000
_MOST_BYTES = 2**28  # of one message


class OneShotLost(RuntimeError):
    """The process ended, or was ended, before its work was done; the text says how."""


class OneShot:
    """Runs a generator function in a process of its own; use it as a context manager, and iterate over it once.

    Args:
        work: found by its module and name; what it yields must be plain JSON values.
        args: for ``work``, plain JSON values too.
        hello: which environment it is about, from ``hello_of``.
        timeout: seconds that the environment may take for one answer.
        limits: of the process with all that it starts.
        ended: set by another thread that wants no more; the process is ended then.

    Attributes:
        left: command lines of the processes that it left running; known when the work is done.
    """

    def __init__(
        self,
        work: Callable[..., Iterator[Any]],
        args: tuple[Any, ...],
        hello: Mapping[str, Any],
        timeout: float,
        limits: WorkerLimits = MANY_AT_ONCE,
        ended: threading.Event | None = None,
    ):
        self.left: tuple[str, ...] = ()
        self._message = {
            **hello,
            "work": [work.__module__, work.__qualname__],
            "args": args,
            "timeout": timeout,
        }
        self._limit, self._stderr = _START_SECONDS, b""
        self._limits, self._ended, self._look = limits, ended, 0.0

    def __enter__(self) -> Self:
        self._left, left = os.pipe()
        words = (*KEEPER, "--left", str(left), str(os.getpid()))
        try:
            self._process = subprocess.Popen(
                (*words, sys.executable, "-P", "-m", "manyturn.envs.hosting.local.subprocess_call_main"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # what a terminal sends is meant for this process
                pass_fds=(left,),
            )
        finally:
            os.close(left)
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        os.close(self._left)

    def __iter__(self) -> Iterator[Any]:
        """The values, each as soon as it is there. Raises OneShotLost, and what the work raised."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(encode(self._message))
            self._process.stdin.flush()
        for message in map(decode, self._lines()):
            self._limit = message.get("within", self._limit)
            if "value" in message:
                yield message["value"]
            elif "error" in message:
                raise _remade(message["error"])
            elif "done" in message:
                self.left = self._count_left()
                return
        raise OneShotLost(self._how_it_ended())

    def _lines(self) -> Iterator[bytes]:
        """Complete lines of standard output until it ends; standard error is read on the way."""
        assert self._process.stdout is not None and self._process.stderr is not None
        out, err = self._process.stdout.fileno(), self._process.stderr.fileno()
        open_, waiting = {out, err}, b""
        with selectors.DefaultSelector() as selector:
            for stream in open_:
                selector.register(stream, selectors.EVENT_READ)
            last = time.monotonic()
            while out in open_:
                self._supervise()
                for key, _ in selector.select(LOOK_SECONDS):
                    chunk = os.read(key.fd, 2**16)
                    if not chunk:
                        selector.unregister(key.fd)
                        open_.discard(key.fd)
                    elif key.fd == err:
                        self._hear(chunk)
                    else:
                        last = time.monotonic()
                        *lines, waiting = (waiting + chunk).split(b"\n")
                        yield from (line + b"\n" for line in lines)
                if time.monotonic() - last > self._limit + _SLACK_SECONDS or len(waiting) > _MOST_BYTES:
                    raise OneShotLost(
                        f"it said nothing that could be understood for {self._limit:g} s, so it was ended"
                    )

    def _supervise(self) -> None:
        """Raise OneShotLost where the process holds too much, or nobody wants more of it."""
        if self._ended is not None and self._ended.is_set():
            raise OneShotLost("it was given up")
        if (now := time.monotonic()) >= self._look:
            self._look = now + LOOK_SECONDS
            if reason := self._limits.excess(held_below(self._process.pid)):
                raise OneShotLost(f"{reason}: let it hold less, or raise env.limits where there are such")

    def _hear(self, chunk: bytes) -> None:
        self._stderr = (self._stderr + chunk)[-_TAIL_BYTES:]
        if os.environ.get("MANYTURN_DEBUG"):
            sys.stderr.buffer.write(chunk)
            sys.stderr.flush()

    def _count_left(self) -> tuple[str, ...]:
        """Report of the keeper after the work has ended."""
        stop, output = time.monotonic() + _END_SECONDS, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._left, selectors.EVENT_READ)
            while (seconds := stop - time.monotonic()) > 0:
                if selector.select(seconds):
                    if not (chunk := os.read(self._left, 2**16)):
                        break
                    output += chunk
        return tuple(word.decode(errors="replace") for word in output.split(b"\0")[:-1])

    def _how_it_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        self._hear(self._process.stderr.read() or b"")
        words = self._stderr.decode(errors="replace")
        if place := where_it_hung(words):
            return f"no answer within {self._limit:g} s: it hung at {place}; let it answer sooner, or raise the timeout"
        code = self._process.returncode
        if code is None:
            return "the process closed its output and did not end"
        if code > 128:
            with contextlib.suppress(ValueError):
                return f"the process was ended by {signal.Signals(code - 128).name}{_last_line(words)}"
        how = ", as os._exit(0) does: raise an error instead" if code == 0 else _last_line(words)
        return f"the process ended with status {code}{how}"

    def _end(self) -> None:
        """End the process and all that it started: the keeper sees to it, or the kernel."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _last_line(words: str) -> str:
    lines = words.strip().splitlines()
    return f"; its last words: {lines[-1].strip()}" if lines else ""


def _remade(error: Mapping[str, str]) -> Exception:
    """An error of the work: ours as it was, any other as one of the environment."""
    if error["module"] == "builtins" or error["module"].startswith("manyturn."):
        kind = getattr(importlib.import_module(error["module"]), error["name"], None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(TypeError):
                return kind(error["text"])
    return EnvError(error["text"])
