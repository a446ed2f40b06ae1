"""Environments as strangers write them, with a first mistake each, named in tests as ``FILE.py:Class``."""

import time

import gymnasium
from gymnasium import spaces

import manyturn as mt


class Walk(mt.TextEnv):
    """Go left twice: what the others are without their mistake."""

    instructions = "Commands: go left, go right."
    max_turns = 4

    def tasks(self, split):
        first = 100 * self.splits.index(split)
        return [mt.Task(f"{split}/{i}", split, {"room": first + i}) for i in range(12)]

    def begin(self, task, rng):
        self.left = 0
        return f"Room {task.params['room']}."

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid("What?")
        self.left += action == "go left"
        return self.succeed("Out.") if self.left == 2 else self.go_on(f"Left {self.left} times.", step=0.1)

    def admissible(self):
        return ["go left", "go right"]

    def expert(self):
        return "go left"


class Tuple(Walk):
    def respond(self, action):
        return "Left.", 1.0, False, False, {}


class Text(Walk):
    def respond(self, action):
        return "Left."


class Nothing(Walk):
    def respond(self, action):
        self.left += 1


class Pair(Walk):
    def begin(self, task, rng):
        return "Room.", {}


class TextPart(Walk):
    def respond(self, action):
        return self.go_on("Left.", bonus="0.1")


class NoPart(Walk):
    def respond(self, action):
        return self.go_on("Left.", bonus=None)


class Flag(Walk):
    def respond(self, action):
        return self.go_on("Left.", done=True)


class Bytes(Walk):
    def respond(self, action):
        return self.go_on(b"Left.")


class ByHand(Walk):
    def respond(self, action):
        return mt.Turn("Left.", {"bonus": "0.1"})


class Letters(Walk):
    def admissible(self):
        return "go left"


class NoRng(Walk):
    def begin(self, task):
        return "Room."


class NoSuper(Walk):
    def __init__(self):
        self.doors = 3


class Generates(Walk):
    def tasks(self, split):
        yield from super().tasks(split)


class Dicts(Walk):
    def tasks(self, split):
        return [{"id": f"{split}/0"}]


class TrainAlone(Walk):
    def tasks(self, split):
        return {"train": super().tasks("train")}[split]


class Raises(Walk):
    def respond(self, action):
        return {}["missing"]


class Plain(gymnasium.Env):
    """A plain Gymnasium environment, whose actions have blanks; its own limit is six steps."""

    instructions = "Commands: go left, go right."
    observation_space = mt.TextSpace()
    action_space = mt.TextSpace()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left, self.steps = 0, 0
        return f"Room {self.np_random.integers(10**6)}.", {}

    def step(self, action):
        self.steps += 1
        self.left += action == "go left"
        return f"Left {self.left} times.", float(self.left == 2), self.left == 2, self.steps == 6, {}

    def admissible(self):
        return ["go left", "go right"]

    def expert(self):
        return "go left"


class Blankless(Plain):
    action_space = spaces.Text(20)


class BlanklessExpert(Blankless):
    """What it lists keeps to its space, the expert does not."""

    def admissible(self):
        return ["left"]


class BlanklessInfo(Blankless):
    """The expert keeps to its space, what it lists does not."""

    def expert(self):
        return "left"


class BlanklessTexts(Plain):
    observation_space = spaces.Text(100)


class OldStep(Plain):
    def step(self, action):
        return super().step(action)[:4]


class Dear(Plain):
    """Each step costs, so that its return is never above 0."""

    def step(self, action):
        text, _, terminated, truncated, info = super().step(action)
        return text, -1.0, terminated, truncated, info


class DearAndSaid(Dear):
    success_above = -3.5


class Says(Plain):
    def step(self, action):
        *rest, terminated, truncated, _ = super().step(action)
        return *rest, terminated, truncated, {"is_success": terminated}


class Waits(Walk):
    """Waits for something in each turn, as for a network."""

    def respond(self, action):
        time.sleep(0.15)
        return super().respond(action)


class HiddenKey(Walk):
    """Its expert knows under which of three mats the key lies, and the agent does not."""

    def begin(self, task, rng):
        self.key = task.params["room"] % 3
        return "Three mats."

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid("What?")
        return self.succeed("The key!") if action == f"lift mat {self.key}" else self.go_on("Nothing here.")

    def admissible(self):
        return [f"lift mat {mat}" for mat in range(3)]

    def expert(self):
        return f"lift mat {self.key}"


class SearchedKey(HiddenKey):
    """Its expert looks under one mat after the other, as an agent can."""

    def expert(self):
        return f"lift mat {self.turn % 3}"


class AnyMat(HiddenKey):
    """The key lies under all of its mats, and the expert lifts one or another."""

    def respond(self, action):
        return super().respond(f"lift mat {self.key}" if action in self.admissible() else action)


class ToldKey(HiddenKey):
    """One role reads where the key lies, the other one has to lift the mat."""

    roles = ("owner", "guest")

    def begin(self, task, rng):
        return f"{super().begin(task, rng)} It lies under {self.key}."

    def respond(self, action):
        return super().respond(action) if self.turn else self.go_on("Three mats.")

    def role(self):
        return self.roles[min(self.turn, 1)]

    def expert(self):
        return super().expert() if self.turn else "lift mat 0"
