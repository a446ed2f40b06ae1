"""An environment in which untaught policies differ in outcome: an episode succeeds by the lengths of its replies."""

import manyturn as mt


class OddReplies(mt.TextEnv):
    instructions = "Say something."
    max_turns = 3

    def tasks(self, split):
        first = {"train": 0, "validation": 40, "test": 50}[split]
        return [mt.Task(f"{split}/{n}", split, {"word": f"word{n}"}) for n in range(first, first + 8)]

    def begin(self, task, rng):
        self.heard = 0
        return f"The word is {task.params['word']}."

    def respond(self, action):
        self.heard += len(action)
        if self.turn < 2:
            return self.go_on(f"You said {len(action)} letters.")
        return self.succeed("That was odd.") if self.heard % 2 else self.fail("That was even.")

    def admissible(self):
        return ["a", "bb"]

    def expert(self):
        return "bb" if self.heard % 2 else "a"

    def answer(self):
        return self.task.params["word"]
