"""A small environment in which any policy has something to learn: three replies, of which each of even length earns."""

import manyturn as mt

TURNS = 3


class Chances(mt.TextEnv):
    instructions = "Say anything of even length."
    max_turns = TURNS

    def tasks(self, split):
        first = {"train": 0, "validation": 40, "test": 50}[split]
        return [
            mt.Task(f"{split}/{n}", split, {"n": n}) for n in range(first, first + (40 if split == "train" else 10))
        ]

    def begin(self, task, rng):
        self.said, self.even = 0, 0
        return "First?"

    def respond(self, action):
        self.said, self.even = self.said + 1, self.even + (len(action) % 2 == 0)
        if self.said < TURNS:
            return self.go_on("Next?")
        return self.succeed("All.") if self.even == TURNS else self.fail("Some.", outcome=self.even / TURNS)

    def progress(self):
        return self.said / TURNS

    def admissible(self):
        return ["ab", "a"]

    def expert(self):
        return "ab"
