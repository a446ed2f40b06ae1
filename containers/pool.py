"""Sandboxes that are started ahead of need and used again.

To start a container takes half a second, to empty one a few milliseconds. So a sandbox that is given back is emptied
and waits for the next taker, unless it may be worn: a command had to be killed, memory ran out, its tool server does
not answer, or it served often.
"""

import atexit
import contextlib
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine import preflight, reaper
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import EngineUnavailable, SandboxLost, SandboxRefused, Snapshot

SIZE_VARIABLE = "MANYTURN_SANDBOXES"
"""Overrides how many sandboxes a process holds at most."""

_EMPTY = Snapshot(*pack([]))
_FILLER_SECONDS = 10.0
_FEW = 16  # an idle container costs little but memory


class SandboxPool:
    """Sandboxes of one process, for any number of threads.

    Args:
        size: how many are alive at most. By default a few, or two for each core where that is more; in any case no more
            than half of the engine's memory holds at their limits, but one.
        ahead: how many of the kind that was taken last wait idle.
        leases: after so many a sandbox is replaced.
    """

    def __init__(self, size: int | None = None, *, ahead: int = 1, leases: int = 100) -> None:
        reaper.reap()
        facts = preflight.examined()
        self.pid, self.size = os.getpid(), size or _size(facts)
        self._memory_mb = (facts.memory >> 20) // 2
        self._ahead, self._leases = ahead, leases
        self._changed = threading.Condition()
        self._alive: list[ContainerEngine] = []  # one for each sandbox that exists or is being started
        self._idle: list[DockerSandbox] = []
        self._leased: set[DockerSandbox] = set()
        self._served: Counter[DockerSandbox] = Counter()
        self._queue: deque[object] = deque()
        self._last_taken: ContainerEngine | None = None
        self._closed = False
        self._filler: threading.Thread | None = None

    def take(self, engine: ContainerEngine, seconds: float = 600.0) -> DockerSandbox:
        """An empty sandbox that answers; who has waited longest is served first.

        Raises:
            EngineUnavailable: none can be started, or none became free within so many seconds.
        """
        last = time.monotonic() + seconds
        queue_up = self._queue.append
        while True:
            sandbox = self._await_turn(engine, last, queue_up)
            if sandbox is None:
                sandbox = self._start(engine)
                break
            if sandbox.engine == engine and _succeeds(sandbox.ping):
                break
            self._discard(sandbox)  # dead, or of another kind and in the way
            queue_up = self._queue.appendleft  # its turn had come
        with self._changed:
            self._leased.add(sandbox)
            self._served[sandbox] += 1
            self._last_taken = engine
        self._fill()
        return sandbox

    def give_back(self, sandbox: DockerSandbox) -> None:
        """Empty it for the next taker, or stop it. Does nothing for one that was given back already."""
        with self._changed:
            if sandbox not in self._leased:
                return
            self._leased.remove(sandbox)
            worn = self._closed or bool(sandbox.spent) or self._served[sandbox] >= self._leases
        if worn or not _succeeds(lambda: sandbox.restore(_EMPTY)):
            self._discard(sandbox)
            self._fill()
        else:
            self._keep(sandbox)

    @contextlib.contextmanager
    def lease(self, engine: ContainerEngine) -> Iterator[DockerSandbox]:
        """Take and give back."""
        sandbox = self.take(engine)
        try:
            yield sandbox
        finally:
            self.give_back(sandbox)

    def close(self) -> None:
        """Stop all of them, also those that are leased."""
        with self._changed:
            self._closed = True
            sandboxes = [*self._idle, *self._leased]
            self._changed.notify_all()
        for sandbox in sandboxes:
            sandbox.hang_up()
        for sandbox in sandboxes:
            sandbox.stop()
        if self._filler is not None:
            self._filler.join(_FILLER_SECONDS)

    def _await_turn(
        self, engine: ContainerEngine, last: float, queue_up: Callable[[object], None]
    ) -> DockerSandbox | None:
        """An idle sandbox, of another kind only if it has to go; or None, which is the right to start one."""
        ticket = object()

        def served() -> bool:
            return self._closed or (self._queue[0] is ticket and (bool(self._idle) or self._room(engine)))

        with self._changed:
            queue_up(ticket)
            try:
                if not self._changed.wait_for(served, last - time.monotonic()):
                    message = f"none of {len(self._alive)} sandboxes became free"
                    raise EngineUnavailable(f"{message}: hold fewer at the same time, or set {SIZE_VARIABLE}")
                if self._closed:
                    raise EngineUnavailable("the pool of sandboxes is closed")
                return self._grab(engine)
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def _grab(self, engine: ContainerEngine) -> DockerSandbox | None:
        for index, sandbox in enumerate(self._idle):
            if sandbox.engine == engine:
                return self._idle.pop(index)
        if self._room(engine):
            self._alive.append(engine)
            return None
        return self._idle.pop(0)

    def _room(self, engine: ContainerEngine) -> bool:
        memory = sum(other.limits.memory_mb for other in self._alive) + engine.limits.memory_mb
        return not self._alive or (len(self._alive) < self.size and memory <= self._memory_mb)

    def _start(self, engine: ContainerEngine) -> DockerSandbox:
        """By the right to do so, which is lost if it fails."""
        sandbox = DockerSandbox(engine)
        try:
            sandbox.start()
        except BaseException:
            self._release(engine)
            raise
        return sandbox

    def _keep(self, sandbox: DockerSandbox) -> None:
        with self._changed:
            closed = self._closed
            if not closed:
                self._idle.append(sandbox)
                self._changed.notify_all()
        if closed:
            self._discard(sandbox)

    def _discard(self, sandbox: DockerSandbox) -> None:
        sandbox.stop()
        with self._changed:
            self._served.pop(sandbox, None)
        self._release(sandbox.engine)

    def _release(self, engine: ContainerEngine) -> None:
        with self._changed:
            self._alive.remove(engine)
            self._changed.notify_all()

    def _fill(self) -> None:
        with self._changed:
            if not self._closed and (self._filler is None or not self._filler.is_alive()):
                self._filler = threading.Thread(target=self._fill_up, name="sandboxes", daemon=True)
                self._filler.start()

    def _fill_up(self) -> None:
        """Start what is missing, then end."""
        while (engine := self._missing()) is not None:
            try:
                sandbox = self._start(engine)
            except EngineUnavailable:
                return  # the next taker hears of it
            self._keep(sandbox)

    def _missing(self) -> ContainerEngine | None:
        with self._changed:
            engine = self._last_taken
            if engine is None or self._closed or self._queue or not self._room(engine):
                return None
            if sum(sandbox.engine == engine for sandbox in self._idle) >= self._ahead:
                return None
            self._alive.append(engine)
            return engine


def _size(facts: preflight.Facts) -> int:
    size = os.environ.get(SIZE_VARIABLE)
    if size is None:
        return max(_FEW, 2 * facts.cores)
    if not size.isdecimal() or int(size) < 1:
        raise ValueError(f"{SIZE_VARIABLE} is {size!r}, not a number of sandboxes")
    return int(size)


def _succeeds(call: Callable[[], None]) -> bool:
    try:
        call()
    except (SandboxLost, SandboxRefused):
        return False
    return True


_lock = threading.Lock()
_current: SandboxPool | None = None


def the_pool() -> SandboxPool:
    """This process's pool; a fork has one of its own. Raises EngineUnavailable."""
    global _current
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = SandboxPool()
        return _current


@contextlib.contextmanager
def lease(engine: ContainerEngine | None = None) -> Iterator[DockerSandbox]:
    """An empty sandbox of this process's pool, for as long as the block runs. Raises EngineUnavailable."""
    with the_pool().lease(engine or ContainerEngine()) as sandbox:
        yield sandbox


@atexit.register
def _close() -> None:
    if _current is not None and _current.pid == os.getpid():
        _current.close()


def _after_fork() -> None:
    global _lock, _current
    _lock, _current = threading.Lock(), None


os.register_at_fork(after_in_child=_after_fork)
