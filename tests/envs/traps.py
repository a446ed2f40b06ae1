"""Environments that do harm by themselves, whatever the agent says, named in tests as ``FILE.py:Class``."""

import itertools
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task


class Calm(TextEnv):
    """Say go: what the others are when they do no harm."""

    instructions = "Say go."
    max_turns = 4

    def tasks(self, split):
        first = 1000 * self.splits.index(split)
        return GeneratedTasks(lambda i: Task(f"{split}/{i}", split, {"room": first + i}), 40, prefix=f"{split}/")

    def begin(self, task: Task, rng) -> str:
        self.waited = 0
        return f"room {task.params['room']}"

    def respond(self, action: str) -> Turn:
        if action == "go":
            return self.succeed("out")
        self.waited += 1
        return self.go_on(f"still here, {self.waited}") if action == "wait" else self.invalid("go or wait")

    def admissible(self) -> list[str]:
        return ["go", "wait"]

    def expert(self) -> str:
        return "go"

    def save(self) -> bytes:
        return str(self.waited).encode()

    def load(self, data: bytes) -> None:
        self.waited = int(data)


def _mark() -> None:
    """Show that harm is being done now."""
    if file := os.environ.get("MANYTURN_TEST_MARK"):
        Path(file).touch()


class Spins(Calm):
    """Never answers, in Python."""

    def respond(self, action):
        _mark()
        while True:
            try:
                time.sleep(0)
            except BaseException:
                continue


class Freezes(Calm):
    """Never answers, in a loop of C that holds Python's lock and hears no signal."""

    def respond(self, action):
        _mark()
        return sum(itertools.repeat(0))


class Sleeps(Calm):
    """Never begins."""

    def begin(self, task, rng):
        _mark()
        time.sleep(3600)


class Leaves(Calm):
    """Ends the process as if all were well."""

    def respond(self, action):
        os._exit(0)


class Crashes(Calm):
    """Ends as broken code of C does."""

    def respond(self, action):
        os.kill(os.getpid(), signal.SIGSEGV)


class Stops(Calm):
    """Holds up its process, clocks and all."""

    def respond(self, action):
        os.kill(os.getpid(), signal.SIGSTOP)


class Unready(Calm):
    """Is never made."""

    def __init__(self):
        _mark()
        time.sleep(3600)


class Unlisted(Calm):
    """Never lists its tasks."""

    def tasks(self, split):
        time.sleep(3600)


class Gone(Calm):
    """Ends the process that makes it."""

    def __init__(self):
        os._exit(7)


class Slow(Calm):
    """Takes its time for each answer."""

    max_turns = 2

    def begin(self, task, rng):
        time.sleep(0.08)
        return super().begin(task, rng)

    def respond(self, action):
        time.sleep(0.08)
        return super().respond(action)


class Helped(Calm):
    """Has a helper that ends when it does."""

    def begin(self, task, rng):
        if not hasattr(self, "helper"):
            self.helper = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        return super().begin(task, rng)


class Breeds(Calm):
    """Starts a process in each episode that outlives it."""

    def begin(self, task, rng):
        subprocess.Popen(["sleep", "3604"], start_new_session=True)  # no other test's
        return super().begin(task, rng)


class Garbles(Calm):
    """Says what no encoding takes."""

    def begin(self, task, rng):
        return super().begin(task, rng) + " \ud83d"


class Poison(Calm):
    """One training task ends the process."""

    culprit = "train/3"

    def respond(self, action):
        if self.task.id == self.culprit:
            os._exit(0)
        return super().respond(action)


class PoisonSleep(Poison):
    """One training task never answers."""

    def respond(self, action):
        if self.task.id == self.culprit:
            time.sleep(3600)
        return Calm.respond(self, action)


class Greedy(Calm):
    """Takes memory, files, threads and processes without end when it is made."""

    def __init__(self, split: str = "train", what: str = "memory"):
        super().__init__(split)
        held: list[object] = []
        while True:
            match what:
                case "memory":
                    held.append(bytearray(b"x" * 2**24))
                case "files":
                    held.append(os.open(os.devnull, os.O_RDONLY))
                case "threads":
                    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
                case _:
                    held.append(subprocess.Popen(["sleep", "3600"]))
            time.sleep(0.001)


class Piped(Calm):
    """Waits for whoever writes into a pipe, when it is made and when it lists its validation tasks."""

    def __init__(self, split: str = "train", made: str = "", listed: str = ""):
        super().__init__(split)
        self.listed = listed
        if made:
            Path(made).read_text()

    def tasks(self, split):
        if self.listed and split == "validation":
            Path(self.listed).read_text()
        return super().tasks(split)
