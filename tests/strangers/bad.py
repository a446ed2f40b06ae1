"""What goes wrong in first environments: each class is one way to get it wrong."""

import os

import manyturn as mt


class Lamp(mt.TextEnv):
    """Two switches, one of which is right; the sound one that the others spoil."""

    instructions = "Light the lamp. Commands: press left, press right."
    max_turns = 4

    def tasks(self, split):
        first = ("train", "validation", "test").index(split) * 20
        return [mt.Task(f"{split}/{i}", split, {"number": first + i}) for i in range(20)]

    def begin(self, task, rng):
        self.right = "press right" if task.params["number"] % 3 else "press left"
        return f"Lamp {task.params['number']}: the {self.right.removeprefix('press ')} switch is the one."

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid("There is no such switch.")
        return self.succeed("Light.") if action == self.right else self.fail("Dark.")

    def admissible(self):
        return ["press left", "press right"]

    def expert(self):
        return self.right


class Raises(Lamp):
    def respond(self, action):
        return {}["missing"]


class GivesTuple(Lamp):
    def respond(self, action):
        return "Light.", 1.0, True, False, {}


class NanPart(Lamp):
    def respond(self, action):
        return self.go_on("Hm.", warmth=float("nan"))


class Overlapping(Lamp):
    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"number": i}) for i in range(20)]


class SameIds(Lamp):
    def tasks(self, split):
        first = ("train", "validation", "test").index(split) * 20
        return [mt.Task(str(i), split, {"number": first + i}) for i in range(20)]


class Hangs(Lamp):
    def respond(self, action):
        while True:
            pass


class Exits(Lamp):
    def respond(self, action):
        os._exit(7)


class WrongRole(Lamp):
    roles = ("left", "right")

    def role(self):
        return "middle"


class NoRole(Lamp):
    roles = ("left", "right")
