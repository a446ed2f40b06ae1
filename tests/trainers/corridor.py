"""A corridor with a lamp at its beginning, whose colour is asked for at its end: what is not noted down is lost."""

import manyturn as mt

COLOURS = ("red", "blue", "green", "white")
PLACES = 6


class Corridor(mt.TextEnv):
    instructions = "Walk on, and say the colour of the lamp where you are asked. Commands: walk, COLOUR."
    max_turns = PLACES + 1

    def tasks(self, split):
        share = {"train": range(8), "validation": [8], "test": [9]}[split]
        cases = [(room, colour) for room in range(100) for colour in COLOURS]
        return [
            mt.Task(f"{split}/{i}", split, {"room": room, "colour": colour})
            for i, (room, colour) in enumerate(cases)
            if room % 10 in share
        ]

    def begin(self, task, rng):
        self.place = 0
        return "A corridor."

    def respond(self, action):
        if self.place == PLACES:
            return self.succeed("Right.") if action == self.task.params["colour"] else self.fail("Wrong.")
        if action != "walk":
            return self.invalid("Walk on.")
        self.place += 1
        if self.place == 1:
            return self.go_on(f"The lamp is {self.task.params['colour']}.")
        return self.go_on("The lamp was?" if self.place == PLACES else f"Door {self.place}.")

    def admissible(self):
        return ["walk", *COLOURS]

    def anchor(self):
        return (self.task.id, self.place)

    def expert(self):
        return self.task.params["colour"] if self.place == PLACES else "walk"

    def snapshot(self):
        return str(self.place).encode()

    def restore(self, data):
        self.place = int(data)
