import gymnasium

import manyturn as mt


class FlagWalk(gymnasium.Env):
    """Without mt.TextEnv: one task for each seed, and spaces that hold text."""

    instructions = "Walk to the flag. Commands: go left, go right."
    max_turns = 7
    metadata = {"render_modes": []}

    def __init__(self):
        self.observation_space, self.action_space = mt.TextSpace(), mt.TextSpace()  # gymnasium's Text has no blanks

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.here = int(self.np_random.integers(20))
        self.flag = self.here + int(self.np_random.choice([-5, -4, -3, 3, 4, 5]))
        return self.text(), self.info()

    def step(self, action):
        understood = action in self.admissible()
        if understood:
            self.here += 1 if action == "go right" else -1
        won = self.here == self.flag
        return self.text(), float(won), won, False, {**self.info(), "understood": understood, "success": won}

    def text(self):
        return f"You are at {self.here}. The flag is at {self.flag}."

    def info(self):  # what a random policy chooses from
        return {"admissible": self.admissible()}

    def admissible(self):
        return ["go left", "go right"]

    def expert(self):  # gives demonstrations, and an upper bound
        return "go right" if self.flag > self.here else "go left"
