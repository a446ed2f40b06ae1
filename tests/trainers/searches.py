"""A tiny environment with tools: an episode searches as often as it likes, and then guesses."""

import manyturn as mt
from manyturn.envs.tools.calls import call_text


class Searches(mt.TextEnv):
    max_turns = 4

    def __init__(self, split="train"):
        super().__init__(split)
        self._tools = mt.Toolset([self.search, self.guess])
        self.instructions = self._tools.instructions("Search at least twice, and guess.")

    def tasks(self, split):
        first = {"train": 0, "validation": 20, "test": 30}[split]
        return [mt.Task(f"{split}/{n}", split, {"door": n}) for n in range(first, first + 6)]

    def begin(self, task, rng):
        self.searches, self.guessed = 0, False
        return "There is a room."

    def search(self) -> str:
        """Search."""
        self.searches += 1
        return "Nothing yet."

    def guess(self) -> str:
        """Guess."""
        self.guessed = True
        return "So be it."

    def respond(self, action):
        answered = self._tools.answer(action)
        if self.guessed:
            return self.succeed("Right.") if self.searches > 1 else self.fail("Wrong.")
        return self.go_on(answered.text) if answered.valid else self.invalid(answered.text)

    def admissible(self):
        return [call_text("search"), call_text("guess")]

    def expert(self):
        return call_text("search" if self.searches < 2 else "guess")
