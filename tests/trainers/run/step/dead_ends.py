"""A world of two turns in which nothing can be learnt, each time for another reason."""

import manyturn as mt


class DeadEnds(mt.TextEnv):
    instructions = "Say anything."
    max_turns = 2

    def __init__(self, why: str = "failed", **rest):
        super().__init__(**rest)
        self.why = why

    def tasks(self, split):
        first = {"train": 0, "validation": 40, "test": 50}[split]
        return [mt.Task(f"{split}/{n}", split, {"n": n}) for n in range(first, first + 10)]

    def begin(self, task, rng):
        self.left = 2
        return "Begin."

    def admissible(self):
        return ["a", "bb"]

    def respond(self, action):
        self.left -= 1
        if self.why == "invalid":
            return self.invalid("What?")
        if self.left:
            return self.go_on("Go on.")
        if self.why == "cancel":
            size = float(sum(map(ord, action)) % 5)
            return self.fail("Over.", outcome=size, fine=-size)
        return self.succeed("Well done.") if self.why == "succeeded" else self.fail("Over.")
