"""A maze that keeps each action in a file before it is heeded, and says so where the disk refuses."""

import os
import tempfile

import numpy as np

from manyturn.envs.classics.maze import Maze
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task

REFUSED = "MANYTURN_REFUSED"  # this variable's value is an open file, which gets a byte for each write that failed


class Scribe(Maze):
    """Twelve turns at most."""

    def __init__(self) -> None:
        super().__init__(max_turns=12)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._file, self._said = tempfile.TemporaryFile(), b""  # noqa: SIM115 - until the next episode
        return super().begin(task, rng)

    def respond(self, action: str) -> Turn:
        line = f"{action!r}\n".encode()
        try:
            self._file.write(line)
            self._file.flush()
        except OSError:
            os.write(int(os.environ[REFUSED]), b"x")
            raise
        self._said += line
        self._file.seek(0)
        if self._file.read() != self._said:
            raise RuntimeError("a file that was written is not what was written")
        return super().respond(action)
