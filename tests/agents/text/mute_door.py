"""An environment that says that it lists admissible commands, and lists none at its second turn."""

import manyturn as mt


class MuteDoor(mt.TextEnv):
    instructions = "Knock until the door opens."

    def tasks(self, split):
        return [mt.Task(f"{split}/0", split, {"split": split})]

    def begin(self, task, rng):
        self.knocks = 0
        return "A door."

    def respond(self, action):
        self.knocks += 1
        return self.go_on("Nothing happens.")

    def admissible(self):
        return [] if self.knocks else ["knock", "wait"]
