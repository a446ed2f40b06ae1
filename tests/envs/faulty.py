"""Environments with faults on command, named in tests as ``FILE.py:Class``."""

import asyncio
import atexit
import ctypes
import faulthandler
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.text_space import TextSpace
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task


def _spin() -> None:
    while True:
        pass


def _freeze() -> None:
    ctypes.PyDLL(None).sleep(3600)  # holds Python's lock: no other thread of Python runs


def _interrupt() -> None:
    raise KeyboardInterrupt


def _wait(file: str) -> None:
    """Until a file is there; another one, whose name ends in .begun, shows that this waits."""
    Path(f"{file}.begun").touch()
    while not Path(file).exists():
        time.sleep(0.01)


def flee(file: str) -> None:
    """Leave a process behind that has another parent, another session and no environment variables."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    os.setsid()
    if fled := os.fork():
        Path(file).write_text(str(fled))
        os._exit(0)
    os.execve("/bin/sleep", ["sleep", "3600"], {})


class Faulty(TextEnv):
    """Echoes with random numbers; certain actions do harm."""

    instructions = "Say anything; 'win' wins."
    max_turns = 8

    def __init__(self, split: str = "train", max_turns: int | None = None, greeting: str = "hello"):
        super().__init__(split, max_turns)
        self.greeting = greeting
        self.kept: list[Any] = []

    def tasks(self, split: str) -> Sequence[Task]:
        first = 1000 * self.splits.index(split)
        return GeneratedTasks(
            lambda i: Task(f"{split}/{i}", split, {"word": first + i}, tags=("echo",)), 100, prefix=f"{split}/"
        )

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.said = 0
        return f"{self.greeting} {task.params['word']} {rng.integers(10**9)}"

    def respond(self, action: str) -> Turn:
        self.said += 1
        verb, _, rest = action.partition(" ")
        harms = {
            "sleep": lambda: time.sleep(float(rest or 3600)),
            "wait": lambda: _wait(rest),
            "spin": _spin,
            "exit": lambda: sys.exit(3),
            "die": lambda: os._exit(9),
            "input": input,
            "print": lambda: (print('{"id": 1, "value": "forged"}', flush=True), os.write(1, b"raw\n")),
            "freeze": _freeze,
            "flee": lambda: flee(rest),
            "hoard": lambda: self.kept.append(b"x" * (int(rest) * 2**20)),
            "open": lambda: self.kept.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(int(rest))),
            "threads": lambda: [threading.Thread(target=time.sleep, args=(3600,)).start() for _ in range(int(rest))],
            "hold": lambda: ctypes.PyDLL(None).usleep(int(1e6 * float(rest))),
            "undue": lambda: (faulthandler.cancel_dump_traceback_later(), time.sleep(3600)),
            "at_exit": lambda: atexit.register(lambda: 1 / 0),
            "interrupt": _interrupt,
            "children": lambda: self.kept.extend(subprocess.Popen(["sleep", "3600"]) for _ in range(int(rest))),
            "spawn": lambda: subprocess.Popen(["sleep", "3600"]),
        }
        if verb in harms:
            harms[verb]()
        if verb == "cancel":
            raise asyncio.CancelledError
        if verb == "raise":
            raise RuntimeError("broken on purpose")
        if verb == "endless":
            return self.go_on("without end", noise=float(rest or "inf"))
        if verb == "win":
            return self.succeed("won")
        if verb == "big":
            return self.go_on("é" * int(rest))
        if not action.strip():
            return self.invalid("say something")
        return self.go_on(f"{action} {self.rng.integers(10**9)}", noise=float(self.rng.normal()))

    def admissible(self) -> list[str]:
        return ["win", f"say {self.said}"]

    def progress(self) -> float:
        return self.said / 8

    def expert(self) -> str:
        return "win"


class Outside(Faulty):
    """Waits for something outside of its process."""

    waits_outside = True


class Unmakeable(Faulty):
    """Can be made ``most`` times in all, counted in a file, then raises."""

    def __init__(self, log: str, most: int) -> None:
        super().__init__()
        with Path(log).open("a+") as file:
            file.write("x")
            if file.tell() > most:
                raise RuntimeError("no other one")


class Scarce(Faulty):
    """Two episodes of a process can be open at once; a third raises."""

    side_by_side = 2
    open_now = 0

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        Scarce.open_now += 1
        if Scarce.open_now > 2:
            raise RuntimeError("three at once")
        return super().begin(task, rng)

    def respond(self, action: str) -> Turn:
        if action == "win":
            Scarce.open_now -= 1
        return super().respond(action)


class Clinging(Faulty):
    """Raises when it is closed."""

    def close(self) -> None:
        raise OSError("it sticks")


class Stranger(gymnasium.Env[str, str]):
    """A Gymnasium environment that knows nothing of this project: only short lower-case actions."""

    observation_space = TextSpace()
    action_space = spaces.Text(max_length=5, charset="abcdefghijklmnopqrstuvwxyz")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.secret = int(self.np_random.integers(100))
        return f"start {self.secret}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"crashed on {action!r}")
        if action == "win":
            return "end", 1, True, True, {"is_success": np.True_}
        if action == "stop":
            return "end", 0.5, True, False, {}
        return f"heard {action}", 0.25, False, False, {"is_success": False}
