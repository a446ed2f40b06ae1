"""A world in which success is luck, and its chance is all that a reply can tell."""

import manyturn as mt


class Forecasts(mt.TextEnv):
    """Forecasts.

    Args:
        chance: of success, whatever is said.
    """

    instructions = "Say how likely you win: 0.1 or 0.9."
    max_turns = 1

    def __init__(self, chance=0.9):
        super().__init__()
        self.chance = chance

    def tasks(self, split):
        first = {"train": 0, "validation": 60, "test": 80}[split]
        return [
            mt.Task(f"{split}/{n}", split, {"n": n}) for n in range(first, first + (60 if split == "train" else 20))
        ]

    def begin(self, task, rng):
        self.wins = rng.random() < self.chance
        return "How likely?"

    def respond(self, action):
        return self.succeed("won") if self.wins else self.fail("lost")

    def admissible(self):
        return ["0.1", "0.9"]

    def expert(self):  # who knows nothing
        return self.admissible()[self.task.params["n"] % 2]
