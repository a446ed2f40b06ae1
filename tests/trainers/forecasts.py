"""A world in which success is luck, and its chance is what a reply can tell."""

import manyturn as mt

CHANCES = {"rarely": 0.1, "often": 0.9}


class Forecasts(mt.TextEnv):
    instructions = "Say how likely you win: 0.1, 0.5 or 0.9."
    max_turns = 1

    def tasks(self, split):
        first = {"train": 0, "validation": 60, "test": 80}[split]
        numbers = range(first, first + (60 if split == "train" else 20))
        return [mt.Task(f"{split}/{n}", split, {"n": n, "wins": list(CHANCES)[n % 2]}) for n in numbers]

    def begin(self, task, rng):
        self.wins = rng.random() < CHANCES[task.params["wins"]]
        return f"{task.params['wins']} {task.params['n']}"

    def respond(self, action):
        return self.succeed("won") if self.wins else self.fail("lost")

    def admissible(self):
        return ["0.1", "0.5", "0.9"]

    def expert(self):
        return "0.5"
