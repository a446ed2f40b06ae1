"""A world in which one task takes its time: each turn lasts until a file is there, or for five minutes."""

import time
from pathlib import Path

import manyturn as mt


class Waiting(mt.TextEnv):
    """Three turns of yes or no; the first task answers no sooner than it may.

    Args:
        file: what the first task waits for.
    """

    instructions = "Say something."
    max_turns = 3

    def __init__(self, file: str):
        super().__init__()
        self.file = Path(file)

    def tasks(self, split):
        return [mt.Task(f"{split}/{number}", split, {"number": number}) for number in range(4)]

    def begin(self, task, rng):
        self.slow = task.params["number"] == 0
        return "Well?"

    def admissible(self):
        return ["yes", "no"]

    def respond(self, action):
        for _ in range(1500):
            if not self.slow or self.file.exists():
                return self.succeed("Done.") if self.turn == 2 else self.go_on("And then?")
            time.sleep(0.2)
        return self.fail("Nobody came.")
