"""A worker: hosts many environments in a process of its own and answers one request after another.

Where environments wait outside of the process, each episode has a thread, and only its own requests wait for one
another.

Started by ``worker.py`` as ``python -P -m manyturn.envs.hosting.local.worker_main``. The first line on standard input
says which environment; each further line is a request. The process ends when standard input does, and its keeper kills
what is left of it.
"""

import atexit
import faulthandler
import os
import queue
import threading
import time
import traceback
from typing import Any, BinaryIO

from manyturn.envs.hosting.handle.deadline import allow
from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle, not_made
from manyturn.envs.hosting.handle.env_spec_message import heed, take_streams
from manyturn.envs.hosting.handle.episode_snapshot import restore, take_snapshot
from manyturn.envs.hosting.handle.messages import decode, encode, error_kind, step_to_wire, task_from_wire


def _listen(requests: BinaryIO, inbox: "queue.SimpleQueue[bytes | None]") -> None:
    """Pass lines on immediately, so that whoever writes them never waits for an environment."""
    for line in requests:
        inbox.put(line)
    inbox.put(None)


class _Slots:
    """The environments of this worker, made when first needed and used again from episode to episode."""

    def __init__(self, hello: dict[str, Any]):
        self._make = (hello["name"], hello["kwargs"], hello["wrappers"])
        self._handles: dict[int, EnvHandle] = {}

    def answer(self, request: dict[str, Any]) -> Any:
        """The value that answers a request; an environment that raised is thrown away."""
        slot = request["slot"]
        try:
            match request["op"]:
                case "reset":
                    handle = self._handles.get(slot)
                    if handle is None:
                        handle = self._handles[slot] = self._made()
                    return step_to_wire(handle.reset(task_from_wire(request["task"]), request["seed"]))
                case "step":
                    return step_to_wire(self._handles[slot].step(request["action"]))
                case "expert":
                    return self._handles[slot].expert()
                case "snapshot":
                    return take_snapshot(self._handles[slot])
                case "restore":
                    return step_to_wire(restore(self._handles[slot], request["snapshot"]))
        except EnvError:
            self._close(slot)
            raise
        except BaseException as error:
            if not isinstance(error, Exception):  # such as KeyboardInterrupt: the environment stopped anywhere
                self._close(slot)
            raise
        raise ValueError(f"unknown request {request['op']!r}")

    def _made(self) -> EnvHandle:
        try:
            return EnvHandle(*self._make)
        except (Exception, SystemExit) as error:
            raise not_made(self._make[0], error) from error

    def close(self) -> None:
        for slot in list(self._handles):
            self._close(slot)

    def _close(self, slot: int) -> None:
        handle = self._handles.pop(slot, None)
        if handle is not None:
            try:
                handle.close()
            except (Exception, SystemExit):
                traceback.print_exc()


def _failure(error: BaseException) -> dict[str, Any]:
    trace = "".join(traceback.format_exception(error))
    return {"kind": error_kind(error) or "fault", "message": str(error), "trace": trace[-4000:]}


class _Deadlines:
    """Ends this process when a request is late: the earliest deadline of those that are being answered.

    A thread of C watches the clock, so that code which never gives up Python's lock is ended too, even when the parent
    no longer can; it prints where the environment hangs.
    """

    def __init__(self, seconds: float):
        self._seconds, self._lock = seconds, threading.Lock()
        self._ends = dict[int, float]()

    def begin(self, number: int) -> None:
        with self._lock:
            self._ends[number] = time.monotonic() + self._seconds
            if len(self._ends) == 1:
                faulthandler.dump_traceback_later(self._seconds, exit=True, file=2)

    def end(self, number: int) -> None:
        with self._lock:
            was_first = next(iter(self._ends)) == number  # all have the same time, so the oldest ends first
            del self._ends[number]
            if not self._ends:
                faulthandler.cancel_dump_traceback_later()
            elif was_first:
                left = max(0.01, next(iter(self._ends.values())) - time.monotonic())
                faulthandler.dump_traceback_later(left, exit=True, file=2)


class _Server:
    """Answers requests, in the main thread or in a thread for each slot."""

    def __init__(self, slots: _Slots, timeout: float, answers: BinaryIO):
        self._slots, self._answers, self._lock = slots, answers, threading.Lock()
        self._deadlines = _Deadlines(timeout)
        self._queues = dict[int, queue.SimpleQueue[dict[str, Any]]]()

    def answer(self, request: dict[str, Any], errors: type[BaseException] = Exception) -> None:
        self._deadlines.begin(request["id"])
        try:
            reply = encode({"id": request["id"], "value": self._slots.answer(request)})
        except errors as error:
            reply = encode({"id": request["id"], "error": _failure(error)})
        self._deadlines.end(request["id"])
        with self._lock:
            self._answers.write(reply)
            self._answers.flush()

    def answer_in_thread(self, request: dict[str, Any]) -> None:
        """Pass a request to the thread of its slot, which is the same for all of its episodes."""
        slot = request["slot"]
        if slot not in self._queues:
            self._queues[slot] = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(self._queues[slot],), daemon=True).start()
        self._queues[slot].put(request)

    def _serve(self, requests: "queue.SimpleQueue[dict[str, Any]]") -> None:
        while True:
            self.answer(requests.get(), BaseException)  # else the thread ends, and later the process with all others


def main() -> None:
    """Answer requests until standard input ends."""
    requests, answers = take_streams()
    hello = decode(requests.readline())
    heed(hello)
    inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, inbox), daemon=True).start()
    slots, timeout = _Slots(hello), hello["timeout"]
    server = _Server(slots, timeout, answers)
    allow(timeout)
    answers.write(encode({"id": 0, "value": os.getpid()}))
    answers.flush()
    answer = server.answer_in_thread if hello["threads"] else server.answer
    while (line := inbox.get()) is not None:
        answer(decode(line))
    slots.close()
    atexit._run_exitfuncs()  # what environments share, such as a browser, ends in order
    os._exit(0)  # threads of an environment do not hold it up


if __name__ == "__main__":
    main()
