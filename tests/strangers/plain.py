"""Plain ``gymnasium.Env``s, with what newcomers have in them.

One's every step costs and it never says success, two have Gymnasium's ``Text``, others' ``info`` is not read.
"""

import gymnasium

import manyturn as mt


class Corridor(gymnasium.Env):
    """Each step costs its distance from the door, so that every return is below 0."""

    instructions = "Walk to the door. Commands: left, right."
    metadata = {"render_modes": []}
    max_turns = 8

    def __init__(self):
        self.observation_space, self.action_space = mt.TextSpace(), mt.TextSpace()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.here, self.door = int(self.np_random.integers(10)), int(self.np_random.integers(10))
        self.door += 4 if self.door == self.here else 0
        return self.text(), {"admissible": ["left", "right"]}

    def step(self, action):
        self.here += {"left": -1, "right": 1}.get(action, 0)
        ended = self.here == self.door
        return self.text(), -float(abs(self.here - self.door)), ended, False, {"admissible": ["left", "right"]}

    def text(self):
        return f"You are at {self.here}, the door is at {self.door}."

    def expert(self):
        return "left" if self.door < self.here else "right"


class Judged(Corridor):
    """The same, which says from which return on it counts as a success."""

    success_above = -100.0


class OwnText(Corridor):
    """The actions are two words, and Gymnasium's default characters have no blank between them."""

    instructions = "Walk to the door. Commands: go left, go right."

    def __init__(self):
        super().__init__()
        self.action_space = gymnasium.spaces.Text(20)

    def reset(self, *, seed=None, options=None):
        text, _ = super().reset(seed=seed)
        return text, {}

    def step(self, action):
        text, reward, ended, truncated, _ = super().step(action.removeprefix("go "))
        return text, reward, ended, truncated, {"success": ended}

    def expert(self):
        return f"go {super().expert()}"


class OtherWord(Corridor):
    """It says of each action whether it was valid, which is what other gyms call it."""

    key, value = "valid", staticmethod(bool)

    def step(self, action):
        text, reward, ended, truncated, info = super().step(action)
        return text, reward, ended, truncated, {**info, self.key: self.value(action in ("left", "right"))}


class Misspelt(OtherWord):
    key = "undertsood"


class BothWords(OtherWord):
    """The same, which says our word too."""

    def step(self, action):
        text, reward, ended, truncated, info = super().step(action)
        return text, reward, ended, truncated, {**info, "understood": info["valid"]}


class Verdict(OtherWord):
    """Its flag is a text, and every text is true."""

    key, value = "understood", staticmethod(lambda meant: "yes" if meant else "no")


class MisspeltActions(Corridor):
    """It lists the actions under nearly the right name."""

    def reset(self, *, seed=None, options=None):
        text, info = super().reset(seed=seed)
        return text, {"admissable": info["admissible"]}

    def step(self, action):
        text, reward, ended, truncated, info = super().step(action)
        return text, reward, ended, truncated, {"admissable": info["admissible"], "distance": 3}
