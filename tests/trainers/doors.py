"""A small environment for learning tests: remember an order, and keep to it although demonstrations stray."""

from itertools import permutations

import manyturn as mt

COLOURS = ("red", "blue", "green", "white", "black")


class Doors(mt.TextEnv):
    instructions = "Open the doors in the order given, one each turn. Command: open COLOUR."
    max_turns = 5

    def tasks(self, split):
        share = {"train": range(5), "validation": [5], "test": [6]}[split]
        orders = enumerate(permutations(COLOURS, 4))
        return [mt.Task(f"{split}/{i}", split, {"order": order}) for i, order in orders if i % 7 in share]

    def begin(self, task, rng):
        self.left = list(task.params["order"])
        return f"Order: {', '.join(self.left)}."

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid("There is no such door.")
        if action != self.expert():
            return self.go_on("It stays shut.")
        self.left.pop(0)
        return self.go_on("It opens.") if self.left else self.succeed("All doors are open.")

    def admissible(self):
        return [f"open {colour}" for colour in COLOURS]

    def progress(self):
        return 1 - len(self.left) / len(self.task.params["order"])

    def expert(self):
        return f"open {self.left[0]}"
