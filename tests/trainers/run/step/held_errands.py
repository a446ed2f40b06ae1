"""A world in which one training task takes until a file is there: the first that begins after another file is there."""

import contextlib
import importlib.util
import os
import time
from pathlib import Path

FILE = Path(__file__).parents[4] / "benchmarks" / "scale" / "latency_world.py"
_spec = importlib.util.spec_from_file_location("errands", FILE)
assert _spec is not None and _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)


class Held(_module.Errands):
    """Errands that take no time, but for the task that is held.

    Args:
        folder: holds ``begin`` once a task is to be held, ``held`` with its name, and ``end`` once it need not be.
    """

    def __init__(self, folder: str):
        super().__init__()
        self.folder = Path(folder)

    def begin(self, task, rng):
        held, own = self.folder / "held", self.folder / f"{os.getpid()}-{id(self)}"
        if task.split == "train" and (self.folder / "begin").exists() and not held.exists():
            own.write_text(task.id)
            with contextlib.suppress(FileExistsError):
                os.link(own, held)  # with its content, and once
        self.waits = held.exists() and held.read_text() == task.id
        return super().begin(task, rng)

    def admissible(self):
        return ["go", "stay"]

    def respond(self, action):
        while self.waits and not (self.folder / "end").exists():
            time.sleep(0.01)
        return super().respond(action)
